"""Prints the list of what typepack's programs and libraries consist of, as CycloneDX 1.5 (JSON).

Reads the output of `cargo metadata --format-version 1` from standard input. The list has the crates of the workspace
that are published or installed, and what they are built from; crates that only tests use are not in it. The hashes are
those of Cargo.lock.
"""

import json
import sys
import tomllib


def main():
    metadata = json.load(sys.stdin)
    packages = {package["id"]: package for package in metadata["packages"]}
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    with open(metadata["workspace_root"] + "/Cargo.lock", "rb") as lock:
        hashes = {(row["name"], row["version"]): row.get("checksum") for row in tomllib.load(lock)["package"]}

    def below(node):
        # The kind of a dependency of tests is "dev".
        return sorted(d["pkg"] for d in node["deps"] if any(kind["kind"] != "dev" for kind in d["dep_kinds"]))

    def reference(package):
        return f"pkg:cargo/{package['name']}@{package['version']}"

    # A crate with a library or program that is not only for this repository's own tests and measurements.
    own = {"typepack-fuzz", "typepack-test-support", "typepack-bench", "typepack-hand"}
    found, waiting = set(), [m for m in metadata["workspace_members"] if packages[m]["name"] not in own]
    while waiting:
        one = waiting.pop()
        if one not in found:
            found.add(one)
            waiting += below(nodes[one])
    components, dependencies = [], []
    for one in sorted(found, key=lambda one: (packages[one]["name"], packages[one]["version"])):
        package = packages[one]
        name, version = package["name"], package["version"]
        component = {"type": "library", "bom-ref": reference(package), "name": name, "version": version,
                     "purl": reference(package)}
        if package["license"]:
            # Old manifests write a slash for OR.
            component["licenses"] = [{"expression": package["license"].replace("/", " OR ")}]
        if hashes.get((name, version)):
            component["hashes"] = [{"alg": "SHA-256", "content": hashes[name, version]}]
        components.append(component)
        dependencies.append({"ref": reference(package), "dependsOn": [reference(packages[d]) for d in below(nodes[one])]})
    version = next(package["version"] for package in packages.values() if package["name"] == "typepack")
    bill = {"bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1,
            "metadata": {"component": {"type": "application", "name": "typepack", "version": version}},
            "components": components, "dependencies": dependencies}
    json.dump(bill, sys.stdout, indent=1)
    print()


main()
