"""Plain sentences and odd texts in English and Portuguese: what a translator is compared on."""

SENTENCES = {
    "enpt": (
        "My sister bought the red bicycle.",
        "Did the doctor really sell two horses last week?",
        "Tomorrow, she has to work late because the train is full.",
        "On Monday, the company has to pay 250 euros because it is very cold.",
        "If the price changes, we will travel to Lisbon with our friends.",
        "The roof of the school was described by three students.",
    ),
    "pten": (
        "A minha irmã comprou a bicicleta vermelha.",
        "O gato preto dorme na casa grande do meu irmão.",
        "A médica vendeu mesmo dois cavalos na semana passada?",
        "Amanhã, ela tem de trabalhar até tarde porque o comboio está cheio.",
        "Na segunda-feira, a empresa tem de pagar 250 euros porque está muito frio.",
        "Se o preço mudar, vamos viajar para Lisboa com os nossos amigos.",
        "O telhado da escola foi descrito por três estudantes.",
    ),
}
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
