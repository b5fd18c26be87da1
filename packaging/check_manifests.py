"""Checks what packaging/ has for Kubernetes: kubernetes.yaml, and the chart rendered with different values.

usage: check_manifests.py FOLDER      the folder packaging/

Helm's own library lints and renders the chart; each manifest must fit the schema of its kind. Prints the first fault."""

import pathlib
import sys

import kubernetes_validate
import yaml
from helm_python import chart, errors

URI = "s3://bucket/dem.tdb"
SERVE = {"uri": URI, "token": {"secretName": "readers"}}
EVERYTHING = {
    "at": 1700000000000,
    "slices": ["north=y=0..99"],
    "options": ["--refresh=60"],
    "cacheSize": "512M",
    "credentialsSecret": "bucket",
    "env": [{"name": "AWS_REGION", "value": "eu-central-1"}],
    "volume": {"claimName": "arrays"},
    "imagePullSecrets": [{"name": "registry"}],
    "serviceAccountName": "reader",
    "podAnnotations": {"team": "maps"},
    "nodeSelector": {"disk": "fast"},
    "tolerations": [{"operator": "Exists"}],
}
# Values, and the kinds they make.
VARIANTS = [
    (SERVE, ["Deployment", "Service"]),
    (SERVE | EVERYTHING, ["Deployment", "Service"]),
    ({"uri": URI, "token": {"open": True}}, ["Deployment", "Service"]),
    ({"mode": "mount", "uri": URI}, ["DaemonSet"]),
    ({"mode": "mount", "uri": URI} | EVERYTHING, ["DaemonSet"]),
]
# Values that must be refused, and a word of the message.
REFUSED = [
    ({"token": {"open": True}}, "uri"),
    ({"uri": URI}, "token.secretName"),
    (SERVE | {"mode": "both"}, "mode"),
    (SERVE | {"tokens": {}}, "tokens"),
    (SERVE | {"slices": ["north"]}, "slices"),
]


def documents(text):
    return [document for document in yaml.safe_load_all(text) if document]


def check(document, where):
    """Checks a manifest with the schema of its kind, in the newest version of Kubernetes that has schemas here."""
    try:
        kubernetes_validate.validate(document, kubernetes_validate.latest_version(), strict=True)
    except kubernetes_validate.ValidationError as error:
        sys.exit(f"{where}, {document['kind']}: {error}")


def main(folder):
    pods = documents((folder / "kubernetes.yaml").read_text())
    for document in pods:
        check(document, "kubernetes.yaml")
    broken = yaml.safe_load(yaml.safe_dump(pods[0]))
    broken["spec"]["containers"][0]["volumeMounts"] = "none"
    try:
        kubernetes_validate.validate(broken, kubernetes_validate.latest_version(), strict=True)
        sys.exit("a manifest with a fault fits its schema")
    except kubernetes_validate.ValidationError:
        pass

    path = folder / "helm/tilefs"
    for values, kinds in VARIANTS:
        report = chart.lint(path, values, strict=True)
        faults = [message for message in report["messages"] if message["severity"] > 1]
        if faults or report["errors"]:
            sys.exit(f"helm lint with {values}: {faults} {report['errors']}")
        opened = chart.Chart.load(path)
        opened.validate_schema(values)
        rendered = opened.render(values, name="release", namespace="maps")
        made = [document for name, text in rendered.items() if name.endswith(".yaml") for document in documents(text)]
        if sorted(document["kind"] for document in made) != kinds:
            sys.exit(f"{values} make {[document['kind'] for document in made]}, not {kinds}")
        for document in made:
            check(document, f"the chart with {values}")
        pod = next(document["spec"]["template"] for document in made if document["kind"] != "Service")
        workload = next(document for document in made if document["kind"] != "Service")
        selector = workload["spec"]["selector"]["matchLabels"]
        if not selector.items() <= pod["metadata"]["labels"].items():
            sys.exit(f"{selector} selects no pod with {pod['metadata']['labels']}")
        container = pod["spec"]["containers"][0]
        mounts = values.get("mode") == "mount"
        if bool(container["securityContext"].get("privileged")) != mounts:
            sys.exit(f"only containers that mount are privileged: {container['securityContext']}")
        volumes = {volume["name"] for volume in pod["spec"]["volumes"]}
        if {mount["name"] for mount in container["volumeMounts"]} != volumes:
            sys.exit(f"{container['volumeMounts']} are not the volumes {volumes}")
        arguments = container["args"]
        expected = ["--at=1700000000000", "--cache-size=512M", "--slice=north=y=0..99", "--refresh=60"] if "at" in values else []
        if URI not in arguments or any(option not in arguments for option in expected):
            sys.exit(f"{expected} and {URI} are not among {arguments}")
        print(" ".join(arguments))
    for values, word in REFUSED:
        try:
            opened = chart.Chart.load(path)
            opened.validate_schema(values)
            opened.render(values, name="release")
            sys.exit(f"the chart accepts {values}")
        except errors.HelmError as error:
            if word not in str(error):
                sys.exit(f"the message for {values} does not name {word}: {error}")


main(pathlib.Path(sys.argv[1]))
