"""The picture of the page in the README: the demo in a real browser, with its proof checked."""

from __future__ import annotations

import base64
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "support"))

from browser import Browser  # noqa: E402 - the path comes first

PICTURE = ROOT / "docs" / "pictures" / "page.jpg"


def main() -> None:
    words = [sys.executable, "-m", "counterlvq", "demo", "--page", "--port", "0"]
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as service:
        assert service.stderr is not None
        address = next(
            found[1] for line in service.stderr if (found := re.search(r"open (http\S+/);", line))
        )
        browser = Browser(1180, 760)
        browser.open(address)
        browser.click("[data-feature=first_floor] .lock")
        browser.click("[data-feature=total_basement] .lock")
        browser.until("document.querySelectorAll('.way').length")
        browser.click(".check")
        browser.until("document.querySelector('.verdict.verified')")
        shot = browser.ask("Page.captureScreenshot", format="jpeg", quality=82)
        PICTURE.write_bytes(base64.b64decode(shot["data"]))
        browser.close()
        service.terminate()
    print(PICTURE.relative_to(ROOT))


if __name__ == "__main__":
    main()
