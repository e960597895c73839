<?php

// Holds the verifier to the shared vectors: `php run_vectors.php path/to/webhooks.json`.

declare(strict_types=1);

require __DIR__ . '/MsgsvcWebhook.php';

$vectors = json_decode(file_get_contents($argv[1]), true, 512, JSON_THROW_ON_ERROR);
$checks = ['signature' => 'verify', 'standard' => 'verifyStandard'];
$count = $wrong = 0;
foreach ($checks as $name => $check) {
    foreach ($vectors[$name] as $case) {
        $count++;
        try {
            MsgsvcWebhook::$check($case['headers'], base64_decode($case['body']), $case['secrets']);
            $accepted = true;
        } catch (InvalidWebhook $error) {
            $accepted = false;
        } catch (InvalidArgumentException $error) {
            $accepted = false;
        }
        if ($accepted !== $case['valid']) {
            $wrong++;
            echo "WRONG: {$case['about']}\n";
        }
    }
}
if ($wrong === 0) {
    echo "$count cases, all right\n";
}
exit($wrong ? 1 : 0);
