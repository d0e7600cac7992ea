"""The command `masks` draws a configuration's masks, and writes each kind of file."""

import csv
import json

from tests.config_masks.test_masks import MISTRAL
from tests.needs import needs


@needs("transformers")
def test_the_command_draws_them_and_writes_each_kind_of_file(home, cli):
    (home / "m").mkdir()
    (home / "m" / "config.json").write_text(json.dumps(MISTRAL), encoding="utf-8")
    drawn = cli("masks", "--config", "home/m", "--length", "5", "--length", "2")
    assert drawn.code == 0 and "decoder, layers 1 to 3: causal, a window of 3" in drawn.out
    assert "  4 w ■ ■ ■ ·  3 of 5" in drawn.out and "  1 p p p ■ ·  1 of 5" in drawn.out
    assert json.loads(cli("masks", "--config", "home/m", "--length", "4", "--json").out)["masks"][0]["sees"] == [[1, 2, 3, 3]]
    assert cli("masks", "--config", "home/m", "--length", "4", "-o", "home/m.csv").code == 0
    rows = list(csv.DictReader((home / "m.csv").read_text(encoding="utf-8").splitlines()))
    assert len(rows) == 12 and [row["sees"] for row in rows[:4]] == ["1", "2", "3", "3"]
    assert cli("masks", "--config", "home/m", "-o", "home/m.html").code == 0
    assert "causal, a window of 3" in (home / "m.html").read_text(encoding="utf-8")
    assert cli("masks", "--config", "home/m", "-o", "home/m.html").code == 2  # it is there
    assert "does not end in" in cli("masks", "--config", "home/m", "-o", "home/m.gif").err
    assert "no config.json" in cli("masks", "--config", "elsewhere").err
