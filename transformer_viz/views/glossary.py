"""The one glossary: every term of art on a page, in a sentence. The pages show it on hover, on focus and under *Glossary*."""

from dataclasses import dataclass
from functools import cache

PAGES = ("explore", "masks", "compare", "train", "survey")
_EXPLORE, _MASKS, _COMPARE, _TRAIN, _SURVEY = (("explore",), ("masks",), ("compare",), ("train",), ("survey",))
_RUNS, _MAPS, _EXPLORE_OR_SURVEY = ("explore", "compare"), ("explore", "masks", "compare", "train"), ("explore", "survey")


@dataclass(frozen=True)
class Term:
    """What a term means here.

    Attributes:
        sentence: one, without a full stop.
        pages: on which it stands.
        source: where it comes from, if from one place.
    """

    sentence: str
    pages: tuple[str, ...] = _MAPS
    source: str = ""


_VASWANI = "Vaswani et al. 2017"
BASICS = (
    *("token", "step", "attention", "attention map", "query", "key", "weight", "value", "head", "layer"),
    *("encoder self-attention", "decoder self-attention", "cross-attention", "mask"),
)
"""What one meets first, in the order in which one meets it."""
TERMS: dict[str, Term] = {
    "token": Term(
        "The unit that the model reads and writes: a letter, a piece of a word, a sign, or <start>, which is token 1", PAGES
    ),
    "step": Term("One token is written: from all that was read and written before, the model computes which one is next"),
    "attention map": Term("A row for each query, a column for each key; the colour of a cell is how much the row looks there"),
    "tokens or words": Term(
        "A model reads pieces of words. By words, weights are added over the pieces of a key and averaged over those of a "
        "query",
        _RUNS,
    ),
    "the model": Term(
        "A drawing of the model: tokens enter below, the output leaves above, and the attention in focus is highlighted",
        _EXPLORE,
    ),
    "drawing of the model": Term("The model that the settings make: tokens enter below, the output leaves above", _TRAIN),
    "checkpoint": Term("A trained model as files: its weights, its settings, its vocabulary and how it was evaluated", PAGES),
    "device": Term("The processor that runs the model; auto takes CUDA, then Apple's MPS, then the CPU"),
    "attention": Term(
        "Each query mixes the values of the keys; its weights sum to 1 and say how much it looks at each key", PAGES
    ),
    "query": Term("A position that looks, and its vector, which is compared with all keys", _MAPS, _VASWANI),
    "key": Term(
        "A position that is looked at, and its vector: the better it fits the query, the larger the weight", _MAPS, _VASWANI
    ),
    "value": Term(
        "The vector that a position passes on: a head's output is the sum of the values, each times its weight", _MAPS, _VASWANI
    ),
    "weight": Term("How much of a key's value goes into a query's output: 0 to 1, and the row sums to 1"),
    "value-weighted norm": Term(
        "By value: the length of what a head takes from a key, which is its weight times the value, through W_O",
        _EXPLORE,
        "Kobayashi et al. 2020",
    ),
    "cause": Term(
        "How much less probable, in nats, the output becomes without a token; below 0, the token spoke against it", _EXPLORE
    ),
    "nat": Term("The unit of log p: one nat less probable is 2.72 times less probable", _EXPLORE),
    "without it": Term(
        "How a token is removed. word: replaced by the unknown token; position: hidden; deleted: the text is shorter", _EXPLORE
    ),
    "gradient × attention": Term(
        "Weights times what log p gains from them, followed through all layers", _EXPLORE, "Chefer et al. 2021"
    ),
    "rollout": Term(
        "Mean weights followed through all layers, half of each token staying its own", _EXPLORE, "Abnar & Zuidema 2020"
    ),
    "alti+": Term("The share that each source token, and each earlier token, has in a row", _EXPLORE, "Ferrando et al. 2022"),
    "source | prefix": Term(
        "How much of a written token comes from the source, and how much from the tokens before it", _EXPLORE
    ),
    "best head": Term(
        "The head of cross-attention with the most weight on the right tokens, in the mean over the steps; a star marks it",
        _EXPLORE,
    ),
    "measure": Term("What the second map shows, beside the weights of the same rows and keys", _EXPLORE),
    "softmax": Term("Turns scores into weights: e to the power of each score, divided by the row's sum", _EXPLORE),
    "output projection": Term("W_O: turns the heads' outputs into a vector as wide as the residual stream", _EXPLORE, _VASWANI),
    "residual stream": Term("A token's vector on its way up: each sublayer adds to it, and later ones read the sum", _EXPLORE),
    "norm": Term(
        "Scales a vector to a standard size, so that no layer drowns the others, and then by learned factors", _EXPLORE
    ),
    "logit lens": Term(
        "A token's vector after each layer, read as if it were the last: through the final norm and the output",
        _EXPLORE,
        "nostalgebraist 2020",
    ),
    "layer": Term("One of the equal blocks of which a model is stacked; L2 is the second from below", PAGES),
    "head": Term(
        "One of several ways of looking that a layer has side by side, each with its own weights: each small map shows one",
        PAGES,
        _VASWANI,
    ),
    "encoder self-attention": Term("The source tokens look at each other"),
    "decoder self-attention": Term("Each written token looks at itself and at those before it"),
    "cross-attention": Term("Each token being written looks at the source, as the encoder has read it"),
    "mask": Term("Which keys a query may not look at; their weight is 0"),
    "causal mask": Term("The mask of the decoder's self-attention: no position may look at those written later"),
    "padding": Term("<pad> tokens that make the sentences of a batch equally long; the mask keeps every query from them"),
    "patching": Term(
        "The output of a head or layer of A is put into B at one position: the share of the difference that it brings back",
        _COMPARE,
        "Meng et al. 2022",
    ),
    "what is put": Term("The output of one head at one position, or the sum of a layer's heads", _COMPARE),
    "layers to patch": Term("Which layers of a deep model to try: each place takes a pass of its own", _COMPARE),
    "logit": Term("The model's number for a token, before the softmax turns it into a probability"),
    "score": Term("QKᵀ/√d_k, before mask and softmax; for a hypothesis, the number that ranks it"),
    "trace": Term("The complete record of one run, in arrays: tokens, weights, masks with reasons, candidates"),
    "right token": Term(
        "What should be written at a step, where the task has an answer; a ring is around the key that it comes from"
    ),
    "exact match": Term("The share of texts whose whole output is right", PAGES),
    "entropy share": Term(
        "Entropy of a row's weights as a share of the most that its allowed keys permit: 0 is one key, 1 all alike", _EXPLORE
    ),
    "at the cause, word": Term(
        "How often a map's largest number is at the token that matters most, where tokens are replaced by the unknown token",
        _EXPLORE_OR_SURVEY,
    ),
    "at the cause, position": Term("The same, where tokens are hidden instead", _EXPLORE_OR_SURVEY),
    "at the cause, 95 %": Term("In this interval are 95 % of the shares over texts drawn again from these texts", _SURVEY),
    "ρ, 95 %": Term("The same for the rank correlations", _SURVEY),
    "by chance": Term("How often a token that is drawn at random is the one that matters most", _SURVEY),
    "ρ, word": Term(
        "Spearman's rank correlation of a map with the causes by word, those under 10⁻⁶ nats taken as equal: 1 is the same "
        "order, 0 none, −1 the opposite",
        _EXPLORE_OR_SURVEY,
    ),
    "ρ, position": Term("The same with the causes by position", _EXPLORE_OR_SURVEY),
    "map above": Term("Goes to this head in the maps above", _EXPLORE),
    "in its place": Term(
        "What replaces the output of a removed head: zeros, its mean over all texts, or that of uniform attention", _EXPLORE
    ),
    "answers that stay": Term(
        "Of the answers that are right with all heads, the share that is also right without it", _EXPLORE
    ),
    "answers that stay, 95 %": Term(
        "In 95 of 100 sets of as many texts such an interval holds the true share", _EXPLORE, "Wilson 1927"
    ),
    "log p lost": Term(
        "How much less probable each token of the answer becomes without the head, in nats, on average", _EXPLORE
    ),
    "log p lost, 95 %": Term("In this interval are 95 % of the means over texts drawn again from these texts", _EXPLORE),
    "lost without them": Term(
        "Comprehensiveness: probability of what was written that is lost without the first k tokens of an order",
        _EXPLORE,
        "DeYoung et al. 2020",
    ),
    "lost with them alone": Term(
        "Sufficiency: probability that is lost where only the first k tokens are left", _EXPLORE, "DeYoung et al. 2020"
    ),
    "greedy decoding": Term("The likeliest token is written at each step", _RUNS),
    "beam": Term("The continuations that a beam search keeps from step to step", _RUNS),
    "beam size": Term("Continuations kept at each step; 1 is greedy decoding", _RUNS),
    "length penalty α": Term("score = sum of log-probabilities / lengthᵅ", _EXPLORE),
    "log p": Term("Sum of the log-probabilities of a hypothesis's tokens", _EXPLORE),
    "decoding": Term("How the next token is chosen: the likeliest, by beam search, drawn, or read from a target", _RUNS),
    "hypothesis": Term("One path through the search tree: the beginning of an output, with its score", _EXPLORE),
    "temperature": Term("Logits are divided by it before a token is drawn: under 1 the likely become likelier", _RUNS),
    "seed": Term("The number that the random draws begin with; the same one draws the same", ("explore", "compare", "train")),
    "snapshot": Term("The model's weights as they were at one step of its training", ("compare", "train")),
    "certificate": Term("A check, by changing what a mask must hide, that no output depends on it", _MASKS),
    "fill": Term("The number put in the place of a masked score before the softmax", _MASKS),
    "precision": Term("How many bits the scores have", _MASKS),
    "mistake": Term("A classic fault of a mask, really made: the model runs with it", _MASKS),
    "edit": Term("A change of a mask, a head or a row of weights with which the model runs again", _MASKS),
    "teacher forcing": Term(
        "The decoder is given the right tokens as read, instead of those that it wrote", ("explore", "masks")
    ),
    "variant": Term(
        "The published architecture that is built: where its norms stand, how it knows positions, its biases", _TRAIN
    ),
    "pre-norm": Term("x + f(norm(x)): the norm stands before each sublayer, and one more after each stack", _TRAIN),
    "post-norm": Term("norm(x + f(x)): the norm stands after each sublayer", _TRAIN, _VASWANI),
    "residual-post-norm": Term("x + norm(f(x)): the norm stands on what a sublayer adds", _TRAIN),
    "shared-norm": Term("One norm serves all sublayers of a block, and one stands on the scaled embeddings", _TRAIN),
    "bias-free": Term("No bias and no learned norm anywhere", _TRAIN),
    "torch-reference": Term("What torch.nn.Transformer computes: norm(x + f(x)), and one more norm after each stack", _TRAIN),
    "the decoder reads": Term("A target that the model is given, token by token, and does not write itself", _EXPLORE),
    "task": Term("What the model learns: which texts it reads, and what it should write for each", _TRAIN),
    "encoder": Term("Number of layers in the part that reads the source; more can learn more, and train more slowly", _TRAIN),
    "decoder": Term("Number of layers in the part that writes the output; more can learn more, and train more slowly", _TRAIN),
    "heads": Term("Number of heads in each attention; d_model must be a multiple of it", _TRAIN),
    "d_model": Term("Width of each token's vector; a wider model can learn more, and trains more slowly", _TRAIN, _VASWANI),
    "d_ff": Term("Inner width of the feed-forward part of each block, usually 2 to 4 times d_model", _TRAIN, _VASWANI),
    "norm placement": Term(
        "Where a sublayer's norm stands. pre: x + f(norm(x)); post: norm(x + f(x)); residual-post: x + norm(f(x))", _TRAIN
    ),
    "positions": Term("How the model knows a token's place: by fixed sines, by a learned vector, or not at all", _TRAIN),
    "embeddings × √d_model": Term(
        "Whose embeddings are made √d_model times larger before positions are added", _TRAIN, _VASWANI
    ),
    "tied embeddings": Term(
        "Which weights are one. output: target embedding and output projection; all: the source embedding too", _TRAIN
    ),
    "activation": Term("The nonlinear function between the two layers of the feed-forward part", _TRAIN),
    "initialization": Term("How the random weights are drawn with which training begins", _TRAIN),
    "dropout": Term(
        "The share of numbers that each step of training sets to zero at random, so that less is learned by heart", _TRAIN
    ),
    "dropout acts on": Term(
        "Where dropout acts: everywhere, on embeddings with their positions, or on what the encoder's self-attention adds",
        _TRAIN,
    ),
    "sinusoid base": Term("Of the sines for positions: the longest wave is 2π times this many tokens long", _TRAIN, _VASWANI),
    "final norms": Term("Adds a norm after the last block of the encoder and of the decoder", _TRAIN),
    "norms learn weight and bias": Term("Lets each norm scale and shift its result by numbers that training learns", _TRAIN),
    "one norm a block": Term("Lets all sublayers of a block share one norm", _TRAIN),
    "norm on embeddings": Term("Adds a norm after embeddings and positions, before the first block", _TRAIN),
    "biases in attention": Term("Adds a learned vector to queries, keys, values and the attention's output", _TRAIN),
    "biases in feed-forward": Term("Adds a learned vector in both layers of the feed-forward part", _TRAIN),
    "bias in the output": Term("Adds a learned number to each token's logit", _TRAIN),
    "optimizer": Term("The rule that turns gradients into changes of the weights", _TRAIN),
    "schedule": Term("How the learning rate goes on after the warm-up: constant, or falling along a curve", _TRAIN),
    "loss": Term("What training makes smaller: minus the log-probability of the right token", ("masks", "train")),
    "batch size": Term(
        "Texts that each step learns from; with more, a step takes longer and goes in a surer direction", _TRAIN
    ),
    "learning rate": Term(
        "How far a step moves the weights, at its highest; too high, and the loss jumps instead of falling", _TRAIN
    ),
    "warm-up, share of steps": Term(
        "The part of the training, from its first step, in which the learning rate rises from 0", _TRAIN
    ),
    "label smoothing": Term(
        "The share of probability that the loss asks for on all tokens alike, so that the model is less certain", _TRAIN
    ),
    "weight decay": Term("How much each step shrinks the weights, times the learning rate; it keeps them small", _TRAIN),
    "sharpness penalty": Term(
        "Above 0, training also sharpens the rows of cross-attention, wherever they point: their entropy counts in the loss",
        _TRAIN,
    ),
    "aligning head": Term(
        "A head of cross-attention that finds, for each written word, where it comes from; pinned words ask it", _EXPLORE
    ),
    "found by": Term(
        "What says where a head should look: the task's alignment, pairs aligned by hand, or only its effect", _EXPLORE
    ),
    "error rate, writing": Term(
        "Alignment error rate, 1 minus the F1 of links from words to source words, in the row that writes a word",
        _EXPLORE,
        "Och & Ney 2003",
    ),
    "error rate, reading": Term("The same in the next row, which reads the word", _EXPLORE, "Chen et al. 2020"),
    "links right": Term("The share of a head's links that are true ones", _EXPLORE),
    "links found": Term("The share of the true links that a head has", _EXPLORE),
    "agreement": Term("How often a head links a word as the best one does", _EXPLORE),
    "change of log p": Term("By how much the log-probability of a written token changes without the head", _EXPLORE),
    "survey": Term("What every head of a model does over many texts: means, intervals, and texts that show it", _SURVEY),
    "heads by": Term("The number that tints each head: its mean over all texts, or the share of texts with a role", _SURVEY),
    "compare with": Term("A second survey, of a model with as many layers and heads: the maps show what differs", _SURVEY),
    "role": Term("A name for where a head looks, such as previous or mirror, given to it anew for each text", _SURVEY),
    "95 %": Term("In 95 of 100 surveys of as many texts such an interval holds the true mean", _SURVEY),
    "uniform attention": Term("The baseline: attention that looks at every allowed key alike", _SURVEY),
    "expected calibration error": Term(
        "How far the probability of tokens and the share that is right are apart, on average", _SURVEY, "Guo et al. 2017"
    ),
    "bleu": Term(
        "How many runs of one to four words an output shares with the known one, 0 to 100", _SURVEY, "Papineni et al. 2002"
    ),
    "steps": Term("How many batches of texts the training learns from; each is one update of the weights", _TRAIN),
}


def sentence(name: str) -> str:
    """What a term means, by its name or a widget's label, with its source."""
    term = TERMS[name.lower()]
    return f"{term.sentence} ({term.source})" if term.source else term.sentence


@cache
def of_page(page: str) -> tuple[str, ...]:
    """The terms of a page, the basics first."""
    return tuple(sorted((name for name, term in TERMS.items() if page in term.pages), key=_place))


def found(words: str) -> list[str]:
    """The terms of all pages that have these words in their name, and then those that have them in their sentence."""
    words = " ".join(words.casefold().split())
    named = [name for name in TERMS if words in name.casefold()]
    return [*named, *(name for name in TERMS if words in sentence(name).casefold() and name not in named)]


def _place(name: str) -> int:
    return BASICS.index(name) if name in BASICS else len(BASICS)
