<?php

declare(strict_types=1);

/** A request that msgsvc did not sign: answer it with 400. */
final class InvalidWebhook extends RuntimeException
{
}

/** Verifies webhooks of msgsvc. One file without dependencies, for PHP 7.4 and later: copy it. */
final class MsgsvcWebhook
{
    /**
     * Throws InvalidWebhook unless the header signs the raw body with one of the secrets.
     *
     * Old timestamps are fine: a retry may come a day late. Remember X-Service-Delivery-Id instead.
     *
     * @param array<string, string> $headers such as getallheaders()
     * @param string $body as it came: file_get_contents('php://input')
     * @param string|string[] $secrets several while one is being replaced
     */
    public static function verify(
        array $headers,
        string $body,
        $secrets,
        string $header = 'X-Service-Signature'
    ): void {
        $given = $times = [];
        foreach (explode(',', self::header($headers, $header)) as $part) {
            [$name, $value] = explode('=', trim($part, " \t"), 2) + [1 => ''];
            if ($name === 't') {
                $times[] = $value;
            } elseif ($name === 'v1') {
                $given[] = $value;
            }
        }
        if (count($times) !== 1 || !preg_match('/\A[0-9]+\z/', $times[0])) {
            throw new InvalidWebhook("$header is malformed");
        }
        $sign = fn (string $secret) => hash_hmac('sha256', "$times[0].$body", $secret);
        self::match($given, array_map($sign, self::all($secrets)));
    }

    /**
     * The same by the headers of Standard Webhooks, whose signature spans the delivery's id too.
     *
     * @param array<string, string> $headers
     * @param string|string[] $secrets
     */
    public static function verifyStandard(array $headers, string $body, $secrets): void
    {
        $id = self::header($headers, 'webhook-id');
        $time = self::header($headers, 'webhook-timestamp');
        if (!preg_match('/\A[0-9]+\z/', $time)) {
            throw new InvalidWebhook('webhook-timestamp is malformed');
        }
        $given = [];
        foreach (explode(' ', self::header($headers, 'webhook-signature')) as $part) {
            [$name, $value] = explode(',', $part, 2) + [1 => ''];
            if ($name === 'v1') {
                $given[] = $value;
            }
        }
        $sign = function (string $secret) use ($id, $time, $body): string {
            return base64_encode(hash_hmac('sha256', "$id.$time.$body", self::key($secret), true));
        };
        self::match($given, array_map($sign, self::all($secrets)));
    }

    private static function header(array $headers, string $wanted): string
    {
        $value = array_change_key_case($headers)[strtolower($wanted)] ?? '';
        if ($value === '') {
            throw new InvalidWebhook("the header $wanted is missing");
        }
        return $value;
    }

    /** @return string[] */
    private static function all($secrets): array
    {
        $found = (array) $secrets;
        if (in_array('', $found, true)) {
            throw new InvalidArgumentException('a secret is empty: is its variable set?');
        }
        array_map([self::class, 'key'], $found);
        return $found;
    }

    private static function key(string $secret): string
    {
        $form = '~\Awhsec_(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?\z~';
        $key = preg_match($form, $secret) ? base64_decode(substr($secret, strlen('whsec_'))) : '';
        // A key that was cut off, or decodes to nothing, is known to everybody.
        if (strlen($key) < 24) {
            throw new InvalidArgumentException('a secret is malformed: whsec_ and the base64 of 24 bytes or more');
        }
        return $key;
    }

    private static function match(array $given, array $expected): void
    {
        $matches = 0;
        foreach ($given as $one) {
            foreach ($expected as $other) {
                // Every pair is compared, in constant time: how long it takes tells nothing.
                $matches += (int) hash_equals($other, $one);
            }
        }
        if ($matches === 0) {
            throw new InvalidWebhook('the signature does not match');
        }
    }
}
