"""Plain sentences and odd texts in English and Portuguese: what a translator is compared on."""

SENTENCES = {
    "enpt": (
        "My sister bought the red bicycle.",
        "The old teacher forgot the heavy suitcase.",
        "Nobody likes the broken piano.",
        "Did your brother really see the house yesterday?",
        "Did the doctor really sell two horses last week?",
        "Tomorrow, she has to work late because the train is full.",
        "On Monday, the company has to pay 250 euros because it is very cold.",
        "In summer, the farmer has to wait for the rain because the shop closes at 6.",
        "If the weather stays good, we will go to the beach.",
        "If the price changes, we will travel to Lisbon with our friends.",
        "The roof of the school was described by three students.",
        "The owner of the boat was painted by an artist.",
    ),
    "pten": (
        "A minha irmã comprou a bicicleta vermelha.",
        "O gato preto dorme na casa grande do meu irmão.",
        "Ninguém viu o piano na rua.",
        "O teu irmão viu mesmo a casa ontem?",
        "A médica vendeu mesmo dois cavalos na semana passada?",
        "Amanhã, ela tem de trabalhar até tarde porque o comboio está cheio.",
        "Na segunda-feira, a empresa tem de pagar 250 euros porque está muito frio.",
        "No verão, o agricultor tem de esperar pela chuva porque a loja fecha às 6.",
        "Se o tempo ficar bom, vamos andar até à praia.",
        "Se o preço mudar, vamos viajar para Lisboa com os nossos amigos.",
        "O telhado da escola foi descrito por três estudantes.",
        "O dono do barco foi pintado por um artista.",
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
