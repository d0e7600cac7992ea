"""`--model` on the command line: what runs a checkpoint runs a Hugging Face model, and says the same of it as Python does."""

import json
import os
from pathlib import Path

import pytest

import transformer_viz as tv
from tests.needs import needs
from tests.readers import families, saved_models
from transformer_viz.commands.decode import summary
from transformer_viz.readers.firefox import folder as firefox

pytestmark = needs("transformers")
CHAT = "{% for m in messages %}<s> {{ m.content }}{% endfor %}{% if add_generation_prompt %} </s> w39{% endif %}"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    models = tmp_path_factory.mktemp("models")
    for family in saved_models.KINDS:
        saved_models.save(models / family, family)
    saved_models.save(models / "chatty")
    (models / "chatty" / "chat_template.jinja").write_text(CHAT)
    return models


@pytest.fixture
def models(home, made, monkeypatch) -> Path:
    """Where `--model` looks, and no cache."""
    from huggingface_hub import constants

    monkeypatch.setenv("TRANSFORMER_VIZ_MODELS", str(made))
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(made / "no-cache"))
    monkeypatch.setattr(firefox, "packaged", dict)
    return made


@pytest.fixture
def decoded(models, cli):
    """`decoded("gpt2", …)`: `decode` of three words on the CPU."""
    return lambda model, *more: cli("decode", "w1 w2 w3", "--model", model, "--device", "cpu", *more)


@pytest.mark.parametrize("family", ["gpt2", "bert"])
def test_json_is_the_run_itself(models, decoded, family):
    done = decoded(family, "--json", "--max-length", "4")
    assert (done.code, done.err) == (0, "")
    data, expected = done.json, summary(tv.decode(tv.load_model(family, device="cpu"), "w1 w2 w3", max_length=4))
    for each in (data, expected):
        each["made_by"].pop("seconds")
    assert data == json.loads(json.dumps(expected))
    assert data["checkpoint"] == family


def test_the_table_has_written_steps_and_counts_the_prompt(decoded):
    data, lines = decoded("gpt2", "--json", "--max-length", "4").json, decoded("gpt2", "--max-length", "4").out.splitlines()
    assert data["n_given"] == 2 and lines[1] == "after a prompt of 3 tokens"
    rows = [line.split()[:2] for line in lines[3:-1]]
    assert rows == [[str(number), step["token"]] for number, step in enumerate(data["steps"][2:], start=1)]
    assert lines[-1] == "stopped after 4 tokens without an end; gpt2 on cpu"


def test_an_encoder_fills_in_mask_tokens_or_says_that_there_is_none(models, cli, decoded):
    given = ("decode", "w1 [MASK] w3", "--model", "bert", "--device", "cpu")
    [fill] = cli(*given, "--json").json["fills"]
    lines = cli(*given).out.splitlines()
    assert lines[1].split() == ["2", *(part for token, p in fill["candidates"][:5] for part in (token, f"{p:.4f}"))]
    assert lines[2:] == ["bert on cpu"]
    assert decoded("bert").out == "nothing to fill in: the text holds no mask token of this model\nbert on cpu\n"


def test_a_prefix_is_text_and_a_ban_a_label_or_an_id(decoded):
    ids = families.tokenizer().get_vocab()
    plain = decoded("gpt2", "--json", "--max-length", "3").json["output_ids"][2:]
    forced = decoded("gpt2", "--json", "--max-length", "3", "--prefix", "w7 w9").json["output_ids"][2:]
    assert forced[:2] == [ids["w7"], ids["w9"]]
    word = families.WORDS[plain[0]]
    for banned in (word, f"#{plain[0]}"):
        written = decoded("gpt2", "--json", "--max-length", "3", "--ban", banned).json["output_ids"][2:]
        assert plain[0] not in written


def test_a_chat_template_is_seen_as_tokens(decoded, mistake, tmp_path):
    data = decoded("chatty", "--chat", "--json", "--max-length", "1").json
    assert data["source"] == "w1 w2 w3"
    assert data["target_tokens"] == ["<s>", "w1", "w2", "w3", "</s>", "w39"]
    assert decoded("chatty", "--json", "--max-length", "1").json["target_tokens"] == ["w1", "w2", "w3"]
    assert "gpt2 has no chat template" in mistake("decode", "w1", "--model", "gpt2", "--chat")
    saved_models.save(tmp_path / "odd")
    (tmp_path / "odd" / "chat_template.jinja").write_text("{{ raise_exception('only\\nin pairs') }}")
    assert "only in pairs" in mistake("decode", "w1", "--model", str(tmp_path / "odd"), "--chat")


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ("gpt2 --checkpoint tiny", "not allowed with argument --model"),
        ("../gpt2", "There is no model '../gpt2', neither as a folder nor in the Hugging Face cache"),
        ("gpt2 --layers 4", "--layers 4 is not possible; decoder attention has layers 1 to 3"),
        ("gpt2 --kinds cross", "cross"),
        ("gpt2 --ban w99", "ban: token 'w99' is not in the vocabulary"),
        ("gpt2 --ban #47", "ban: token '47' is not in the vocabulary"),
        ("gpt2 --max-length 99", "max_length=99"),
    ],
)
def test_mistakes(models, mistake, arguments, named):
    assert named in mistake("decode", "w1 w2 w3", "--model", *arguments.split())


@pytest.mark.parametrize(("family", "more"), [("bert", []), ("marian", ["--strategy", "beam"])])
def test_a_trace_is_drawn_and_compared(models, cli, family, more):
    for path, word in (("one.npz", "w3"), ("other.npz", "w4")):
        given = ("--model", family, "--max-length", "3", "--device", "cpu", "-o", path, *more)
        done = cli("trace", f"w1 [MASK] {word}", *given)
        assert (done.code, done.err) == (0, "")
    assert tv.load_trace("one.npz").made_by["checkpoint"] == family
    for what in ("player", "mosaic", "masks"):
        assert cli("render", "one.npz", "-o", f"{what}.html", "--what", what, "--plotlyjs", "cdn").err == ""
        assert "[MASK]" in Path(f"{what}.html").read_text()
    assert cli("diff", "one.npz", "one.npz").code == 0
    done = cli("diff", "one.npz", "other.npz")
    assert done.code == 1 and "'w3'" in done.out and "'w4'" in done.out


def test_the_list_of_models(models, cli, made):
    rows = {row["name"]: row for row in cli("models", "--json").json["models"]}
    assert set(rows) == {"bert", "chatty", "gpt2", "marian"}
    assert rows["gpt2"]["memory"] == 4 * rows["gpt2"]["parameters"] == 4 * families.untapped("gpt2").num_parameters()
    assert rows["gpt2"]["folder"] == str(made / "gpt2")
    lines = cli("models").out.splitlines()
    assert [line.split()[:2] for line in lines[1:3]] == [["bert", "bert"], ["chatty", "gpt2"]]


def test_the_list_says_why_one_cannot_be_used(models, cli, tmp_path, monkeypatch):
    monkeypatch.setenv("TRANSFORMER_VIZ_MODELS", os.pathsep.join([str(tmp_path / "a"), str(tmp_path / "none")]))
    assert cli("models").out.splitlines()[0] == "no models"
    (tmp_path / "a" / "odd").mkdir(parents=True)
    (tmp_path / "a" / "odd" / "config.json").write_text('{"model_type": "gpt2"}')
    assert "cannot be used: odd: there is no model.safetensors" in cli("models").out
    [row] = cli("models", "--json").json["models"]
    assert "no model.safetensors" in row["error"]


def test_check_masks_passes_and_fails_by_name_without_the_causal_mask(models, cli):
    named = ("check-masks", "--model", "gpt2", "--device", "cpu", "--replacements", "1", "--text", "w1 w2 w3", "--text", "w4")
    done = cli(*named)
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("Sound: nothing that must not be seen changed anything in model gpt2 (2 texts,")
    done = cli(*named, "--edits", "decoder:off", "--json")
    assert (done.code, done.json["causes"]) == (1, ["no-causal"])
