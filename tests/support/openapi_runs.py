"""Run schemathesis over the OpenAPI document of a server, each time with one credential."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

HOOKS = "support.openapi_hooks"
TESTS = Path(__file__).parents[1]
SCHEMATHESIS = Path(sys.executable).with_name("schemathesis")
CHECKS = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
    "unsupported_method",
    "allow_header_conformance",
    "repeat",  # defined in openapi_hooks.py
)
SETTINGS = """
[cache]
enabled = false

[phases.stateful.generation]
max-examples = 20
"""


Headers = Mapping[str, str]
ExistingIds = Mapping[str, Sequence[str]]  # ids of one session and its parts, by path parameter


class Target(NamedTuple):
    """A server, and the ids and bodies that a run uses.

    Every second request uses the ids of one group of `existing`, and the body of its operation in `bodies`,
    if there is one. The run does not remove these ids and `tokens`.
    """

    url: str
    document: Mapping[str, Any]  # OpenAPI
    owner: Headers
    existing: Sequence[ExistingIds]
    bodies: Mapping[str, Any]  # by operation
    tokens: Sequence[str]  # ids of tokens


class Result(NamedTuple):
    """The result of a run of schemathesis."""

    operations: int
    cases: int
    answers: Mapping[str, Mapping[str, int]]  # by operation and status
    repeated: Mapping[str, int]  # requests by credential or mutation
    findings: int
    report: str


class Fuzzer:
    """Runs schemathesis as a process in its own directory."""

    def __init__(self, target: Target, directory: Path) -> None:
        self._target = target
        self._directory = directory
        directory.mkdir()
        (directory / "openapi.json").write_text(json.dumps(target.document))
        (directory / "schemathesis.toml").write_text(SETTINGS)

    def run(self, headers: Headers, others: Mapping[str, Headers], options: Sequence[str]) -> Result:
        """Call every operation with these headers; repeat each call with another credential or a mutation."""
        setup, sent, report = (self._directory / name for name in ("setup.json", "sent.json", "report.json"))
        setup.write_text(json.dumps(self._target._asdict() | {"credentials": others}))
        command = [
            *(
                str(SCHEMATHESIS),
                "run",
                "openapi.json",
                "--url",
                self._target.url,
                "--no-color",
                "--no-shrink",
            ),
            *("--checks", ",".join(CHECKS), "--continue-on-failure", "--request-timeout", "60"),
            *("--warnings", "off", "--suppress-health-check", "all", "--output-sanitize", "false"),
            *("--report", "json", "--report-json-path", str(report)),
            *(word for name, value in headers.items() for word in ("--header", f"{name}:{value}")),
            *options,
        ]
        environment = os.environ | {
            "SCHEMATHESIS_HOOKS": HOOKS,
            "PYTHONPATH": str(TESTS),
            "BULLPEN_OPENAPI_SETUP": str(setup),
            "BULLPEN_OPENAPI_SENT": str(sent),
            # Its tables of Unicode take seconds to compute, so each run finds those of an earlier one.
            "HYPOTHESIS_STORAGE_DIRECTORY": str(TESTS.parent / ".hypothesis"),
        }
        ended = subprocess.run(
            command,
            cwd=self._directory,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        assert report.exists() and sent.exists(), ended.stdout
        return _result(json.loads(report.read_text()), json.loads(sent.read_text()), ended.stdout)


def _result(report: dict[str, Any], sent: dict[str, Any], text: str) -> Result:
    operations, cases = report["operations"], report["test_cases"]
    findings = cases["unique_failures"] + cases["errored"] + operations["errored"]
    return Result(operations["tested"], cases["generated"], sent["answers"], sent["repeated"], findings, text)
