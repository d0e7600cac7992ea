"""A grammar of another pair of languages, Spanish to French, of eleven words: the rules know none."""

import tempfile
from pathlib import Path

from transformer_viz.grammar import Grammar, load_grammar

LEXICON = """\
paradigm one
  {1}
paradigm noun-m
  {1} n=s g=m
  {2} n=p g=m
paradigm noun-f
  {1} n=s g=f
  {2} n=p g=f
paradigm number
  {1} n=s
  {2} n=p
paradigm adj
  {1} g=m n=s
  {2} g=f n=s
  {1}s g=m n=p
  {2}s g=f n=p
words NOUN noun-m noun-m
  perro perros | chien chiens
words NOUN noun-f noun-f
  casa casas | maison maisons
words ADJ adj adj
  rojo roja | rouge rouge
  negro negra | noir noire | weight=2
words VERB number number
  ve ven | voit voient | object=yes
  duerme duermen | dort dorment | object=no
words NAME one one
  ana | ana
  luna | luna
"""
TEMPLATES = """\
kind short: SENT[object=no]
kind long: SENT[object=yes]
once NOUN
first VERB
pair ADJ NOUN
# An adjective stands behind its noun in Spanish, and a name may stand before or behind the verb.
NP[n=N] = el NOUN[n=s g=m n=N] > le@el NOUN[n=s]
NP[n=N] = la NOUN[g=f n=s n=N] ADJ[g=f n=s] > la@la NOUN[n=s] ADJ[g=f n=s]
NP[n=s] = NAME > NAME
SENT[object=no] = NP[n=N] VERB[n=N object=no] > NP VERB[n=N]
SENT[object=yes] = NP1[n=N] VERB[n=N object=yes] NP2 > NP1 VERB[n=N] NP2
SENT[object=yes]*0 = NAME1 VERB[n=s object=yes] NAME2 > NAME2 VERB[n=s] NAME1
"""


def grammar(lexicon: str = LEXICON, templates: str = TEMPLATES) -> Grammar:
    with tempfile.TemporaryDirectory() as folder:
        files = Path(folder) / "made.lexicon", Path(folder) / "made.templates"
        for file, text in zip(files, (lexicon, templates), strict=True):
            file.write_text(text, encoding="utf-8")
        return load_grammar(*files)
