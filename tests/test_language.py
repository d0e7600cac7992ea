"""What is said in several languages, and what `docs.catalogue` finds wrong with a catalogue."""

import threading
from pathlib import Path

import pytest

from docs import catalogue
from transformer_viz.errors import OptionError
from transformer_viz.language import listed, say, speaking, spoken
from transformer_viz.sentences.run_sentences import say_sentence
from transformer_viz.viewer import modules, script_words

KNOWN, PLACES = "Numbers as a table", "Download {name} ({size})"


def test_english_is_said_where_nobody_chose_a_language_and_again_afterwards() -> None:
    with speaking("zh"):
        assert say(PLACES, name="{a}", size="1 MB") == "下载 {a}（1 MB）"
    assert say(PLACES, name="{a}", size="1 MB") == "Download {a} (1 MB)"


def test_a_thread_says_what_its_maker_would_have_said() -> None:
    heard = []
    with speaking("zh"):
        work = spoken(lambda: heard.append(say(KNOWN)))
    for each in (work, lambda: heard.append(say(KNOWN))):
        thread = threading.Thread(target=each)
        thread.start()
        thread.join()
    assert heard == ["以表格显示数字", KNOWN]


def test_a_language_without_a_catalogue_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(OptionError, match=r"'\.\./zh' is not known; choose one of en, zh"), speaking("../zh"):
        pass


def test_a_list_of_names() -> None:
    assert [listed("abc"[:n]) for n in range(4)] == ["", "a", "a and b", "a, b and c"]


def test_a_sentence_has_its_pieces_where_its_language_has_them() -> None:
    fields = {"token": ("code", "{x}"), "rest": (("plain", " and "), ("strong", "b")), "end": "."}
    assert say_sentence("It is {token}{rest}{end}", **fields) == (
        *(("plain", "It is "), ("code", "{x}"), ("plain", " and "), ("strong", "b"), ("plain", ".")),
    )


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ('say("a")', ["a"]),
        ('[...saySentence("a", { b })]', ["a"]),
        ('later(\n  "a \\"b\\"")', ['a "b"']),
        ('this.say("a"); #say("b"); unsay("c"); say(name)', []),
    ],
)
def test_what_a_script_says_is_found(code: str, found: list[str]) -> None:
    assert [text for _, text in script_words.texts(code)] == found


def test_what_a_template_says_is_found_with_its_fields_and_without() -> None:
    code = """<p title="{{ say("a") }}">{{ say("b {n}", n=1 + 2) }}{{ say(name) }}{% set x = say("c", n="d") %}</p>"""
    assert [*catalogue._of_template(code, "")] == ["a", "b {n}", "c"]


def test_scripts_have_the_words_that_they_say_and_no_others() -> None:
    script = modules.script("table.js")
    assert script_words.words(script) == {} and script_words.spoken(script) == script
    with speaking("zh"):
        said = script_words.words(script)
        assert said[KNOWN] == "以表格显示数字" and PLACES not in said
        assert script_words.spoken(script).endswith("});\n")


# ---- the catalogues


def test_every_catalogue_is_complete() -> None:
    said = catalogue.texts()
    assert KNOWN in said and PLACES in said
    assert [fault for file in catalogue.catalogues() for fault in catalogue.faults(file, said)] == []


PO = """msgid ""
msgstr ""
"Content-Type: text/plain; charset=utf-8\\n"
"Plural-Forms: nplurals=1; plural=0;\\n"

msgid "right"
msgstr "对"

#, fuzzy
msgid "unsure"
msgstr "吗"

msgid "{a} of {b}"
msgstr "{b} {c}"

msgid "{count} head"
msgid_plural "{count} heads"
msgstr[0] "{count} 个头"

msgid "gone"
msgstr "没了"
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    folder = tmp_path / "zh" / "LC_MESSAGES"
    folder.mkdir(parents=True)
    (folder / "transformer_viz.po").write_text(PO, encoding="utf-8")
    return folder / "transformer_viz.po"


def test_what_is_wrong_with_a_catalogue_is_said(file: Path) -> None:
    texts = ("right", "unsure", "{a} of {b}", ("{count} head", "{count} heads"), "new")
    said: dict[catalogue.Id, list[str]] = {text: ["a.py"] for text in texts}
    assert catalogue.faults(file, said) == [
        "zh is not sure (fuzzy) of 'unsure'",
        "zh: '{b} {c}' has other places than '{a} of {b}'",
        "zh lacks 'new', of a.py",
        "zh has 'gone', which nobody says",
        "zh has no .mo; make it with: python -m docs.catalogue",
    ]
    catalogue.write(file, catalogue.renewed(catalogue.read(file), said))
    assert catalogue.faults(file, said) == [
        "zh is not sure (fuzzy) of 'unsure'",
        "zh: '{b} {c}' has other places than '{a} of {b}'",
        "zh lacks 'new', of a.py",
    ]
    file.write_text(file.read_text(encoding="utf-8").replace("对", "错"), encoding="utf-8")
    assert "the .mo of zh is not that of its .po; make it anew with: python -m docs.catalogue" in catalogue.faults(file, said)


@pytest.mark.parametrize("code", ["f'{n} heads'", "'a' + 'b'", "'a' if n else 'b'"])
def test_a_text_that_is_put_together_is_refused(code: str) -> None:
    begin = "from transformer_viz.language import say\n"
    assert [*catalogue._of_python(f"{begin}say(words)\nother.say('a')\nsay('a' 'b')", "a.py")] == ["ab"]
    with pytest.raises(catalogue.CatalogueError, match=r"a\.py, line 2: .* is put together"):
        list(catalogue._of_python(f"{begin}say({code})", "a.py"))
