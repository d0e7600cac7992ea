"""German sentences to English, of a small world: a grammar of our own, no corpus.

Worked example: `gestern habe ich den alten Film gesehen` is framed between `<start>` and `<end>`; the answer is `yesterday I
saw the old film`. Step 2 must write `saw` and look at `gesehen`, key 7: German puts the participle last.
"""

from transformer_viz.language import later
from transformer_viz.tasks.task import Example
from transformer_viz.tasks.translation import Translation


class German(Translation):
    """Writes the English of a German sentence, word by word.

    Args:
        vocabularies: of a checkpoint that was trained before.
        held_out_share: share of all sentences, and of all combinations of two words, that are kept out of training.
    """

    name = "german"
    about = later("translates German sentences of a small world into English")
    language = later("German")
    # Behind another word a capital makes the polite *you* of what is *she*, *they* or *her* without it.
    refused = r'\S\s+(Sie|Ihnen|Ihr|Ihre[mnrs]?)(?=[\s,.;:!?"]|$)'
    why_refused = later(
        "{word} with a capital is the polite form of you, which this model does not know. Write du or ihr for you, "
        "and sie for she or they."
    )
    all_examples = (
        Example("den Hund sieht der König", later("only the article says who sees whom")),
        Example(
            "gestern habe ich den alten Film gesehen", later("the participle is last in German: the attention jumps to the end")
        ),
        Example("ich fahre morgen mit dem Zug nach Berlin", later("time, manner, place: the order turns round")),
        Example("ich stehe um sieben Uhr auf", later("one verb in two places")),
        Example("ich weiß, dass das Haus weiß ist", later("the same word twice, and the verb at the end")),
        Example("der Hund sieht den König", later("the same words as the first example, with the articles changed")),
        Example("den alten Mann hat die junge Frau besucht", later("the object first, the participle last")),
        Example("ich möchte ein Bier", later("the sentence of a published tutorial")),
    )


TASK = German
