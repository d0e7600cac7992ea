"""Plain sentences in English and Portuguese, made of templates: what a translator is compared on."""

from itertools import cycle, islice, product

_ENGLISH = (
    (
        "{0} {1} the {2} {3}.",
        ("My sister", "The old teacher", "A young man", "Nobody"),
        ("bought", "forgot", "found", "likes"),
        ("red", "heavy", "broken", "new"),
        ("bicycle", "suitcase", "window", "piano"),
    ),
    (
        "Did {0} really {1} {2} {3}?",
        ("your brother", "they", "the doctor", "Maria"),
        ("see", "sell", "clean", "draw"),
        ("the house", "two horses", "a bridge", "my shoes"),
        ("yesterday", "last week", "in the morning", "without help"),
    ),
    (
        "{0}, {1} has to {2} because {3}.",
        ("Tomorrow", "On Monday", "Today", "In summer"),
        ("she", "the company", "the farmer", "he"),
        ("work late", "pay 250 euros", "leave early", "wait for the rain"),
        ("the train is full", "it is very cold", "the shop closes at 6", "nobody knows the answer"),
    ),
)
_PORTUGUESE = (
    (
        "{0} {1} {2} {3}.",
        ("A minha irmã", "O velho professor", "Um jovem", "Ninguém"),
        ("comprou", "esqueceu", "encontrou", "viu"),
        ("a bicicleta", "a mala", "o piano", "a janela"),
        ("vermelha", "ontem", "na rua", "sem querer"),
    ),
    (
        "{0} {1} mesmo {2} {3}?",
        ("O teu irmão", "A médica", "O João", "Ela"),
        ("viu", "vendeu", "limpou", "desenhou"),
        ("a casa", "dois cavalos", "uma ponte", "os meus sapatos"),
        ("ontem", "na semana passada", "de manhã", "sem ajuda"),
    ),
    (
        "{0}, {1} tem de {2} porque {3}.",
        ("Amanhã", "Na segunda-feira", "Hoje", "No verão"),
        ("ela", "a empresa", "o agricultor", "ele"),
        ("trabalhar até tarde", "pagar 250 euros", "sair cedo", "esperar pela chuva"),
        ("o comboio está cheio", "está muito frio", "a loja fecha às 6", "ninguém sabe a resposta"),
    ),
)
ODD = (
    "a  b   c",
    "</s>",
    "<unk> and </s> are text",
    "100% of 3.14 & 2,5€",
    "日本 😀",
    "Hello",
    "…",
    "e-mail: a.b@c.org",
    "\u200bx",
    "ﬁne ½",
)
"""What tokenizers disagree about."""
DIRECTIONS = {"enpt": _ENGLISH, "pten": _PORTUGUESE}


def sentences(direction: str, n: int) -> list[str]:
    """The first `n`, of each template in turn, spread over its words."""
    each = [_of(template, *words) for template, *words in DIRECTIONS[direction]]
    return [next(made) for made in islice(cycle(each), n)]


def _of(template, *words):
    every = list(product(*words))
    # 101 has no factor with 256 in common: all are seen, far apart ones first.
    return (template.format(*every[number * 101 % len(every)]) for number in range(len(every)))
