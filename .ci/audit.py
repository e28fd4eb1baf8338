"""Look up known vulnerabilities of the locked dependencies, and decide what they mean.

pip-audit asks PyPI. An advisory that a release mends fails: raise the version in the lock. One
without a fix is printed and passes: failing would only teach people to switch the scan off. Where
nothing can be asked (offline, a mirror without advisories) that is said, and passes.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

SECONDS = 180


def main() -> int:
    """Audit; 1 if a fixed version of a locked dependency is there."""
    lock = Path(__file__).parents[1] / "requirements.lock"
    with TemporaryDirectory() as folder:
        report = Path(folder) / "audit.json"
        command = [sys.executable, "-m", "pip_audit", "--requirement", str(lock)]
        command += ["--no-deps", "--disable-pip", "--format=json", f"--output={report}"]
        why = f"no answer in {SECONDS} s"
        try:
            done = subprocess.run(  # noqa: S603, a fixed command, no shell
                command, capture_output=True, text=True, timeout=SECONDS, check=False
            )
            why = "".join(done.stderr.strip().splitlines()[-1:])[:200]
            found = json.loads(report.read_text(encoding="utf-8"))["dependencies"]
        except (OSError, ValueError, subprocess.TimeoutExpired):
            print(f"audit left out, nobody could be asked: {why}")
            return 0
    if skipped := [item["name"] for item in found if "skip_reason" in item]:
        print(f"audit: {len(skipped)} of {len(found)} packages are unknown to this index")
    mendable = [line for item in found for line in advisories(item)]
    for is_mendable, line in mendable:
        print(f"{'FIX' if is_mendable else 'no fix yet'}: {line}")
    if not mendable and len(skipped) < len(found):
        print("audit: no known vulnerability")
    return 1 if any(is_mendable for is_mendable, _ in mendable) else 0


def advisories(item: dict[str, object]) -> list[tuple[bool, str]]:
    """Whether a release mends it, and a line, for each advisory of a package."""
    rows = item.get("vulns", [])
    lines = []
    for row in rows if isinstance(rows, list) else []:
        fixes = ", ".join(row["fix_versions"])
        line = f"{item['name']} {item['version']}: {row['id']}" + (
            f", fixed in {fixes}" * bool(fixes)
        )
        lines.append((bool(fixes), line))
    return lines


if __name__ == "__main__":
    sys.exit(main())
