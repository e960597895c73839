"""Holds the verifier to the shared vectors: `python run_vectors.py path/to/webhooks.json`."""

import base64
import json
import sys

from msgsvc_webhook import verify, verify_standard


def accepts(check, case):
    try:
        check(case["headers"], base64.b64decode(case["body"]), case["secrets"])
    except ValueError:
        return False
    return True


def main(path):
    with open(path, encoding="utf-8") as file:
        vectors = json.load(file)
    cases = [(verify, case) for case in vectors["signature"]]
    cases += [(verify_standard, case) for case in vectors["standard"]]
    wrong = [case["about"] for check, case in cases if accepts(check, case) != case["valid"]]
    print("\n".join(f"WRONG: {about}" for about in wrong) or f"{len(cases)} cases, all right")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
