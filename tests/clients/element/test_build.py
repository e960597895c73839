"""What is built and committed, and what the README prints."""

import gzip
import json
import re
import shutil
import subprocess

import segno

from tests.clients.element.site import FOLDER
from tests.clients.tools import missing, run

BUILT = FOLDER / "dist" / "msgsvc-signin.js"
HOSTED = FOLDER.parents[2] / "plugins/areas/auth/msgsvc_auth/hosted/static/msgsvc-signin.js"

#: Bytes that a text of a code's largest size has, by its version (ISO/IEC 18004, table 7, level M).
CAPACITIES = [14, 26, 42, 62, 84, 106, 122, 152, 180, 213]

#: An answer's head is there, its body comes when the next run has begun: no fetch rejects any more.
LATE_ANSWERS = """
import { createSignIn } from "BUILT";
const moment = () => new Promise((resolve) => setImmediate(resolve));
const found = {};
async function run(name, status, said, begin, next) {
  const answers = [];
  globalThis.fetch = () => new Promise((resolve) => answers.push(resolve));
  const signIn = createSignIn({ session: "/signin" });
  begin(signIn);
  next(signIn);
  answers[0]({ status, ok: status === 200, json: async () => said });
  await moment();
  found[name] = signIn.state.status;
}
const begun = { links: { a: "https://a.example" }, expires_in: 600 };
const confirmed = { status: "confirmed", redirect: "/" };
const start = (signIn) => void signIn.start();
const follow = (signIn) => void signIn.follow("/status", 600);
await run("started twice", 200, begun, start, start);
await run("refused", 404, null, start, start);
await run("followed, then cancelled", 200, confirmed, follow, (signIn) => signIn.cancel());
await run("followed, then started", 200, confirmed, follow, start);
console.log(JSON.stringify(found));
process.exit();
"""


def test_the_file_weighs_at_most_6_kb_and_loads_nothing() -> None:
    text = BUILT.read_bytes()

    assert len(gzip.compress(text, 9)) <= 6_000
    assert re.findall(rb"\bimport\b|https?://(?!www\.w3\.org/2000/svg)", text) == []


def test_the_hosted_page_serves_the_file_that_is_built() -> None:
    assert HOSTED.read_bytes() == BUILT.read_bytes(), "run `make clients`"


def test_what_is_built_is_of_these_sources() -> None:
    if not (FOLDER / "node_modules" / "esbuild").exists():
        missing("esbuild")

    run("node", "build.mjs", "--check", cwd=FOLDER)


def test_packages_of_the_build_come_from_the_registry() -> None:
    lock = json.loads((FOLDER / "package-lock.json").read_text("utf-8"))
    found = {package.get("resolved", "") for package in lock["packages"].values()}

    assert {url for url in found if not url.startswith("https://registry.npmjs.org/")} <= {""}


def test_the_readme_prints_the_site_as_it_runs() -> None:
    readme = (FOLDER / "README.md").read_text("utf-8")
    (printed,) = re.findall(r"```python\n(.*?)```", readme, re.DOTALL)

    assert printed in (FOLDER / "examples" / "site.py").read_text("utf-8")


def test_the_readme_names_every_text_part_and_variable() -> None:
    readme = (FOLDER / "README.md").read_text("utf-8")
    source = {path.name: path.read_text("utf-8") for path in (FOLDER / "src").iterdir()}
    texts = re.findall(r"^  (\w+): \[", source["texts.ts"], re.MULTILINE)
    parts = re.findall(r'part: "(\w+)"', source["view.ts"])
    named = [
        *("data-" + re.sub("([A-Z])", "-\\1", text).lower() for text in texts),
        *parts,
        *re.findall(r"--msgsvc-[\w-]+", source["style.css"]),
    ]

    assert len(texts) == 18
    assert [name for name in named if f"`{name}`" not in readme] == []


def test_the_wrapper_for_react_is_short() -> None:
    assert len((FOLDER / "examples" / "react.tsx").read_text("utf-8").splitlines()) <= 40


def test_an_answer_that_comes_after_cancel_or_another_start_changes_nothing() -> None:
    if shutil.which("node") is None:
        missing("node")
    done = subprocess.run(
        ["node", "--input-type=module", "-e", LATE_ANSWERS.replace("BUILT", BUILT.as_uri())],
        capture_output=True,
        text=True,
        check=True,
    )

    assert json.loads(done.stdout) == {
        "started twice": "starting",
        "refused": "starting",
        "followed, then cancelled": "idle",
        "followed, then started": "starting",
    }


def test_codes_are_those_of_another_encoder_in_every_version_and_longer_texts_have_none() -> None:
    if shutil.which("node") is None:
        missing("node")
    texts = ["x" * capacity for capacity in CAPACITIES]
    program = (
        f"import {{ qrPath }} from {json.dumps(BUILT.as_uri())};"
        "const texts = JSON.parse(process.argv[1]);"
        "console.log(JSON.stringify(texts.map(qrPath)));"
    )
    command = ["node", "--input-type=module", "-e", program]
    # It is loaded without a browser, as frameworks do on a server.
    done = subprocess.run(
        [*command, json.dumps([*texts, "x" * 214])], capture_output=True, text=True, check=True
    )
    *drawn, too_long = json.loads(done.stdout)

    assert too_long is None
    for text, code in zip(texts, drawn, strict=True):
        dark = {(int(y), int(x)) for x, y in re.findall(r"M(\d+) (\d+)h1v1h-1z", code["d"])}
        made = segno.make(text, error="m", micro=False, boost_error=False, mask=0, mode="byte")
        expected = {
            (y, x) for y, row in enumerate(made.matrix) for x, bit in enumerate(row) if bit & 1
        }
        assert dark == expected, len(text)
