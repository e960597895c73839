"""The software bill of materials of a release, in CycloneDX: what `msgsvc[all]` installs with the versions of
`constraints.txt`, and what needs what."""

import hashlib
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib.metadata import distribution
from pathlib import Path
from uuid import NAMESPACE_URL, uuid5

from cyclonedx.contrib.license.factories import LicenseFactory
from cyclonedx.model import HashAlgorithm, HashType
from cyclonedx.model.bom import Bom, BomMetaData
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.model.license import License
from cyclonedx.output import make_outputter
from cyclonedx.schema import OutputFormat, SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from packageurl import PackageURL
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from contrib.release.distributions import distributions

SCHEMA = SchemaVersion.V1_6

#: What is released: the service with everything that it can use.
RELEASED = "msgsvc[all]"


class InvalidBill(Exception):
    """The document is not what the schema of CycloneDX asks for."""


def bill_of_materials(version: str, epoch: int, wheels: Path) -> str:
    """The document as JSON: the same for the same commit. Raises `InvalidBill`.

    Versions and licences are those of the running environment, which `make install` pins.
    """
    ours = {each.name: each for each in distributions()}
    root = Requirement(RELEASED)
    needs = _walk(root)
    components: dict[str, Component] = {}
    for name in needs:
        found = Component(
            name=name,
            version=version if name in ours else distribution(name).version,
            type=ComponentType.LIBRARY,
            description=distribution(name).metadata["Summary"],
            licenses=_licences(name),
        )
        found.purl = PackageURL("pypi", name=name, version=found.version)
        found.bom_ref.value = str(found.purl)
        if name in ours:
            wheel = wheels / f"{ours[name].file_prefix(version)}-py3-none-any.whl"
            digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
            found.hashes.add(HashType(alg=HashAlgorithm.SHA_256, content=digest))
        components[name] = found
    released = components[root.name]
    released.type = ComponentType.APPLICATION
    metadata = BomMetaData(component=released, timestamp=datetime.fromtimestamp(epoch, UTC))
    bom = Bom(
        components=[each for name, each in components.items() if name != root.name],
        metadata=metadata,
        serial_number=uuid5(NAMESPACE_URL, f"msgsvc {version} {epoch}"),
    )
    for name, needed in needs.items():
        bom.register_dependency(components[name], [components[other] for other in sorted(needed)])
    text = make_outputter(bom, OutputFormat.JSON, SCHEMA).output_as_string(indent=2)
    if wrong := JsonStrictValidator(SCHEMA).validate_str(text):
        raise InvalidBill(str(wrong))
    return f"{text}\n"


def _walk(root: Requirement) -> dict[str, set[str]]:
    """Every distribution that `root` installs, with those that it needs itself."""
    needs: dict[str, set[str]] = {}
    seen: set[tuple[str, str]] = set()
    waiting = [root]
    while waiting:
        one = waiting.pop()
        name = canonicalize_name(one.name)
        needs.setdefault(name, set())
        for extra in ("", *one.extras):
            if (name, extra) in seen:
                continue
            seen.add((name, extra))
            for needed in _needed(name, extra):
                waiting.append(needed)
                # An extra may ask for others of its own distribution.
                needs[name] |= {canonicalize_name(needed.name)} - {name}
    return needs


def _needed(name: str, extra: str) -> Iterator[Requirement]:
    for text in distribution(name).requires or ():
        one = Requirement(text)
        without = one.marker is None or one.marker.evaluate({"extra": ""})
        if without != bool(extra) and (
            without or (one.marker and one.marker.evaluate({"extra": extra}))
        ):
            yield one


def _licences(name: str) -> list[License]:
    metadata = distribution(name).metadata
    text: str | None = metadata["License-Expression"] or metadata["License"]
    # Some have the whole text of their licence there.
    if not text or "\n" in text:
        named = [
            line.rpartition(" :: ")[2]
            for line in metadata.get_all("Classifier", [])
            if line.startswith("License :: ")
        ]
        text = named[-1] if named else None
    return [LicenseFactory().make_from_string(text)] if text else []
