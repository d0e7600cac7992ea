"""The one glossary: every term of art on a page, in a sentence. The pages show it on hover, on focus and under *Glossary*."""

from dataclasses import dataclass
from functools import cache

from transformer_viz.language import later, say

PAGES = ("explore", "masks", "compare", "train", "survey")
_EXPLORE, _MASKS, _COMPARE, _TRAIN, _SURVEY = (("explore",), ("masks",), ("compare",), ("train",), ("survey",))
_RUNS, _MAPS, _EXPLORE_OR_SURVEY = ("explore", "compare"), ("explore", "masks", "compare", "train"), ("explore", "survey")


@dataclass(frozen=True)
class Term:
    """The meaning of a term here.

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
"""The terms that one meets first, in the order in which one meets them."""
TERMS: dict[str, Term] = {
    later("token"): Term(
        later("The unit that the model reads and writes: a letter, a piece of a word, a sign, or <start>, which is token 1"),
        PAGES,
    ),
    later("step"): Term(
        later("One token is written: from all that was read and written before, the model computes which one is next")
    ),
    later("attention map"): Term(
        later("A row for each query, a column for each key; the colour of a cell is how much the row looks there")
    ),
    later("tokens or words"): Term(
        later(
            "A model reads pieces of words. By words, weights are added over the pieces of a key and averaged over those of a "
            "query"
        ),
        _RUNS,
    ),
    later("the model"): Term(
        later("A drawing of the model: tokens enter below, the output leaves above, and the attention in focus is highlighted"),
        _EXPLORE,
    ),
    later("drawing of the model"): Term(
        later("The model that the settings make: tokens enter below, the output leaves above"), _TRAIN
    ),
    later("checkpoint"): Term(
        later("A trained model as files: its weights, its settings, its vocabulary and how it was evaluated"), PAGES
    ),
    later("device"): Term(later("The processor that runs the model; auto takes CUDA, then Apple's MPS, then the CPU")),
    later("attention"): Term(
        later("Each query mixes the values of the keys; its weights sum to 1 and say how much it looks at each key"), PAGES
    ),
    later("query"): Term(later("A position that looks, and its vector, which is compared with all keys"), _MAPS, _VASWANI),
    later("key"): Term(
        later("A position that is looked at, and its vector: the better it fits the query, the larger the weight"),
        _MAPS,
        _VASWANI,
    ),
    later("value"): Term(
        later("The vector that a position passes on: a head's output is the sum of the values, each times its weight"),
        _MAPS,
        _VASWANI,
    ),
    later("weight"): Term(later("How much of a key's value goes into a query's output: 0 to 1, and the row sums to 1")),
    later("value-weighted norm"): Term(
        later("By value: the length of what a head takes from a key, which is its weight times the value, through W_O"),
        _EXPLORE,
        "Kobayashi et al. 2020",
    ),
    later("cause"): Term(
        later("How much less probable, in nats, the output becomes without a token; below 0, the token spoke against it"),
        _EXPLORE,
    ),
    later("nat"): Term(later("The unit of log p: one nat less probable is 2.72 times less probable"), _EXPLORE),
    later("without it"): Term(
        later("How a token is removed. word: replaced by the unknown token; position: hidden; deleted: the text is shorter"),
        _EXPLORE,
    ),
    later("gradient × attention"): Term(
        later("Weights times what log p gains from them, followed through all layers"), _EXPLORE, "Chefer et al. 2021"
    ),
    later("rollout"): Term(
        later("Mean weights followed through all layers, half of each token staying its own"), _EXPLORE, "Abnar & Zuidema 2020"
    ),
    later("alti+"): Term(
        later("The share that each source token, and each earlier token, has in a row"), _EXPLORE, "Ferrando et al. 2022"
    ),
    later("source | prefix"): Term(
        later("How much of a written token comes from the source, and how much from the tokens before it"), _EXPLORE
    ),
    later("best head"): Term(
        later(
            "The head of cross-attention with the most weight on the right tokens, in the mean over the steps; a star marks it"
        ),
        _EXPLORE,
    ),
    later("measure"): Term(later("What the second map shows, beside the weights of the same rows and keys"), _EXPLORE),
    later("softmax"): Term(
        later("Turns scores into weights: e to the power of each score, divided by the row's sum"), _EXPLORE
    ),
    later("output projection"): Term(
        later("W_O: turns the heads' outputs into a vector as wide as the residual stream"), _EXPLORE, _VASWANI
    ),
    later("residual stream"): Term(
        later("A token's vector on its way up: each sublayer adds to it, and later ones read the sum"), _EXPLORE
    ),
    later("norm"): Term(
        later("Scales a vector to a standard size, so that no layer drowns the others, and then by learned factors"), _EXPLORE
    ),
    later("logit lens"): Term(
        later("A token's vector after each layer, read as if it were the last: through the final norm and the output"),
        _EXPLORE,
        "nostalgebraist 2020",
    ),
    later("layer"): Term(later("One of the equal blocks of which a model is stacked; L2 is the second from below"), PAGES),
    later("head"): Term(
        later(
            "One of several ways of looking that a layer has side by side, each with its own weights: each small map shows one"
        ),
        PAGES,
        _VASWANI,
    ),
    later("encoder self-attention"): Term(later("The source tokens look at each other")),
    later("decoder self-attention"): Term(later("Each written token looks at itself and at those before it")),
    later("cross-attention"): Term(later("Each token being written looks at the source, as the encoder has read it")),
    later("mask"): Term(later("Which keys a query may not look at; their weight is 0")),
    later("causal mask"): Term(later("The mask of the decoder's self-attention: no position may look at those written later")),
    later("padding"): Term(
        later("<pad> tokens that make the sentences of a batch equally long; the mask keeps every query from them")
    ),
    later("patching"): Term(
        later(
            "The output of a head or layer of A is put into B at one position: the share of the difference that it brings back"
        ),
        _COMPARE,
        "Meng et al. 2022",
    ),
    later("what is put"): Term(later("The output of one head at one position, or the sum of a layer's heads"), _COMPARE),
    later("layers to patch"): Term(later("Which layers of a deep model to try: each place takes a pass of its own"), _COMPARE),
    later("logit"): Term(later("The model's number for a token, before the softmax turns it into a probability")),
    later("score"): Term(later("QKᵀ/√d_k, before mask and softmax; for a hypothesis, the number that ranks it")),
    later("trace"): Term(later("The complete record of one run, in arrays: tokens, weights, masks with reasons, candidates")),
    later("right token"): Term(
        later("What should be written at a step, where the task has an answer; a ring is around the key that it comes from")
    ),
    later("exact match"): Term(later("The share of texts whose whole output is right"), PAGES),
    later("entropy share"): Term(
        later("Entropy of a row's weights as a share of the most that its allowed keys permit: 0 is one key, 1 all alike"),
        _EXPLORE,
    ),
    later("at the cause, word"): Term(
        later(
            "How often a map's largest number is at the token that matters most, where tokens are replaced by the unknown token"
        ),
        _EXPLORE_OR_SURVEY,
    ),
    later("at the cause, position"): Term(later("The same, where tokens are hidden instead"), _EXPLORE_OR_SURVEY),
    later("at the cause, 95 %"): Term(
        later("In this interval are 95 % of the shares over texts drawn again from these texts"), _SURVEY
    ),
    later("ρ, 95 %"): Term(later("The same for the rank correlations"), _SURVEY),
    later("by chance"): Term(later("How often a token that is drawn at random is the one that matters most"), _SURVEY),
    later("ρ, word"): Term(
        later(
            "Spearman's rank correlation of a map with the causes by word, those under 10⁻⁶ nats taken as equal: 1 is the same "
            "order, 0 none, −1 the opposite"
        ),
        _EXPLORE_OR_SURVEY,
    ),
    later("ρ, position"): Term(later("The same with the causes by position"), _EXPLORE_OR_SURVEY),
    later("map above"): Term(later("Goes to this head in the maps above"), _EXPLORE),
    later("in its place"): Term(
        later("What replaces the output of a removed head: zeros, its mean over all texts, or that of uniform attention"),
        _EXPLORE,
    ),
    later("answers that stay"): Term(
        later("Of the answers that are right with all heads, the share that is also right without it"), _EXPLORE
    ),
    later("answers that stay, 95 %"): Term(
        later("In 95 of 100 sets of as many texts such an interval holds the true share"), _EXPLORE, "Wilson 1927"
    ),
    later("log p lost"): Term(
        later("How much less probable each token of the answer becomes without the head, in nats, on average"), _EXPLORE
    ),
    later("log p lost, 95 %"): Term(
        later("In this interval are 95 % of the means over texts drawn again from these texts"), _EXPLORE
    ),
    later("lost without them"): Term(
        later("Comprehensiveness: probability of what was written that is lost without the first k tokens of an order"),
        _EXPLORE,
        "DeYoung et al. 2020",
    ),
    later("lost with them alone"): Term(
        later("Sufficiency: probability that is lost where only the first k tokens are left"), _EXPLORE, "DeYoung et al. 2020"
    ),
    later("greedy decoding"): Term(later("The likeliest token is written at each step"), _RUNS),
    later("beam"): Term(later("The continuations that a beam search keeps from step to step"), _RUNS),
    later("beam size"): Term(later("Continuations kept at each step; 1 is greedy decoding"), _RUNS),
    later("length penalty α"): Term(later("score = sum of log-probabilities / lengthᵅ"), _EXPLORE),
    later("log p"): Term(later("Sum of the log-probabilities of a hypothesis's tokens"), _EXPLORE),
    later("decoding"): Term(
        later("How the next token is chosen: the likeliest, by beam search, drawn, or read from a target"), _RUNS
    ),
    later("hypothesis"): Term(later("One path through the search tree: the beginning of an output, with its score"), _EXPLORE),
    later("temperature"): Term(
        later("Logits are divided by it before a token is drawn: under 1 the likely become likelier"), _RUNS
    ),
    later("seed"): Term(
        later("The number that the random draws begin with; the same one draws the same"), ("explore", "compare", "train")
    ),
    later("snapshot"): Term(later("The model's weights as they were at one step of its training"), ("compare", "train")),
    later("certificate"): Term(later("A check, by changing what a mask must hide, that no output depends on it"), _MASKS),
    later("fill"): Term(later("The number put in the place of a masked score before the softmax"), _MASKS),
    later("precision"): Term(later("How many bits the scores have"), _MASKS),
    later("mistake"): Term(later("A classic fault of a mask, really made: the model runs with it"), _MASKS),
    later("edit"): Term(later("A change of a mask, a head or a row of weights with which the model runs again"), _MASKS),
    later("teacher forcing"): Term(
        later("The decoder is given the right tokens as read, instead of those that it wrote"), ("explore", "masks")
    ),
    later("variant"): Term(
        later("The published architecture that is built: where its norms stand, how it knows positions, its biases"), _TRAIN
    ),
    later("pre-norm"): Term(
        later("x + f(norm(x)): the norm stands before each sublayer, and one more after each stack"), _TRAIN
    ),
    later("post-norm"): Term(later("norm(x + f(x)): the norm stands after each sublayer"), _TRAIN, _VASWANI),
    later("residual-post-norm"): Term(later("x + norm(f(x)): the norm stands on what a sublayer adds"), _TRAIN),
    later("shared-norm"): Term(
        later("One norm serves all sublayers of a block, and one stands on the scaled embeddings"), _TRAIN
    ),
    later("bias-free"): Term(later("No bias and no learned norm anywhere"), _TRAIN),
    later("torch-reference"): Term(
        later("What torch.nn.Transformer computes: norm(x + f(x)), and one more norm after each stack"), _TRAIN
    ),
    later("the decoder reads"): Term(
        later("A target that the model is given, token by token, and does not write itself"), _EXPLORE
    ),
    later("task"): Term(later("What the model learns: which texts it reads, and what it should write for each"), _TRAIN),
    later("encoder"): Term(
        later("Number of layers in the part that reads the source; more can learn more, and train more slowly"), _TRAIN
    ),
    later("decoder"): Term(
        later("Number of layers in the part that writes the output; more can learn more, and train more slowly"), _TRAIN
    ),
    later("heads"): Term(later("Number of heads in each attention; d_model must be a multiple of it"), _TRAIN),
    later("d_model"): Term(
        later("Width of each token's vector; a wider model can learn more, and trains more slowly"), _TRAIN, _VASWANI
    ),
    later("d_ff"): Term(
        later("Inner width of the feed-forward part of each block, usually 2 to 4 times d_model"), _TRAIN, _VASWANI
    ),
    later("norm placement"): Term(
        later("Where a sublayer's norm stands. pre: x + f(norm(x)); post: norm(x + f(x)); residual-post: x + norm(f(x))"),
        _TRAIN,
    ),
    later("positions"): Term(
        later("How the model knows a token's place: by fixed sines, by a learned vector, or not at all"), _TRAIN
    ),
    later("embeddings × √d_model"): Term(
        later("Whose embeddings are made √d_model times larger before positions are added"), _TRAIN, _VASWANI
    ),
    later("tied embeddings"): Term(
        later("Which weights are one. output: target embedding and output projection; all: the source embedding too"), _TRAIN
    ),
    later("activation"): Term(later("The nonlinear function between the two layers of the feed-forward part"), _TRAIN),
    later("initialization"): Term(later("How the random weights are drawn with which training begins"), _TRAIN),
    later("dropout"): Term(
        later("The share of numbers that each step of training sets to zero at random, so that less is learned by heart"),
        _TRAIN,
    ),
    later("dropout acts on"): Term(
        later(
            "Where dropout acts: everywhere, on embeddings with their positions, or on what the encoder's self-attention adds"
        ),
        _TRAIN,
    ),
    later("sinusoid base"): Term(
        later("Of the sines for positions: the longest wave is 2π times this many tokens long"), _TRAIN, _VASWANI
    ),
    later("final norms"): Term(later("Adds a norm after the last block of the encoder and of the decoder"), _TRAIN),
    later("norms learn weight and bias"): Term(
        later("Lets each norm scale and shift its result by numbers that training learns"), _TRAIN
    ),
    later("one norm a block"): Term(later("Lets all sublayers of a block share one norm"), _TRAIN),
    later("norm on embeddings"): Term(later("Adds a norm after embeddings and positions, before the first block"), _TRAIN),
    later("biases in attention"): Term(
        later("Adds a learned vector to queries, keys, values and the attention's output"), _TRAIN
    ),
    later("biases in feed-forward"): Term(later("Adds a learned vector in both layers of the feed-forward part"), _TRAIN),
    later("bias in the output"): Term(later("Adds a learned number to each token's logit"), _TRAIN),
    later("optimizer"): Term(later("The rule that turns gradients into changes of the weights"), _TRAIN),
    later("schedule"): Term(
        later("How the learning rate goes on after the warm-up: constant, or falling along a curve"), _TRAIN
    ),
    later("loss"): Term(later("What training makes smaller: minus the log-probability of the right token"), ("masks", "train")),
    later("batch size"): Term(
        later("Texts that each step learns from; with more, a step takes longer and goes in a surer direction"), _TRAIN
    ),
    later("learning rate"): Term(
        later("How far a step moves the weights, at its highest; too high, and the loss jumps instead of falling"), _TRAIN
    ),
    later("warm-up, share of steps"): Term(
        later("The part of the training, from its first step, in which the learning rate rises from 0"), _TRAIN
    ),
    later("label smoothing"): Term(
        later("The share of probability that the loss asks for on all tokens alike, so that the model is less certain"), _TRAIN
    ),
    later("weight decay"): Term(
        later("How much each step shrinks the weights, times the learning rate; it keeps them small"), _TRAIN
    ),
    later("sharpness penalty"): Term(
        later(
            "Above 0, training also sharpens the rows of cross-attention, wherever they point: their entropy counts in the loss"
        ),
        _TRAIN,
    ),
    later("aligning head"): Term(
        later("A head of cross-attention that finds, for each written word, where it comes from; pinned words ask it"), _EXPLORE
    ),
    later("found by"): Term(
        later("What says where a head should look: the task's alignment, pairs aligned by hand, or only its effect"), _EXPLORE
    ),
    later("error rate, writing"): Term(
        later("Alignment error rate, 1 minus the F1 of links from words to source words, in the row that writes a word"),
        _EXPLORE,
        "Och & Ney 2003",
    ),
    later("error rate, reading"): Term(later("The same in the next row, which reads the word"), _EXPLORE, "Chen et al. 2020"),
    later("links right"): Term(later("The share of a head's links that are true ones"), _EXPLORE),
    later("links found"): Term(later("The share of the true links that a head has"), _EXPLORE),
    later("agreement"): Term(later("How often a head links a word as the best one does"), _EXPLORE),
    later("change of log p"): Term(
        later("By how much the log-probability of a written token changes without the head"), _EXPLORE
    ),
    later("survey"): Term(
        later("What every head of a model does over many texts: means, intervals, and texts that show it"), _SURVEY
    ),
    later("heads by"): Term(
        later("The number that tints each head: its mean over all texts, or the share of texts with a role"), _SURVEY
    ),
    later("compare with"): Term(
        later("A second survey, of a model with as many layers and heads: the maps show what differs"), _SURVEY
    ),
    later("role"): Term(
        later("A name for where a head looks, such as previous or mirror, given to it anew for each text"), _SURVEY
    ),
    later("95 %"): Term(later("In 95 of 100 surveys of as many texts such an interval holds the true mean"), _SURVEY),
    later("uniform attention"): Term(later("The baseline: attention that looks at every allowed key alike"), _SURVEY),
    later("expected calibration error"): Term(
        later("How far the probability of tokens and the share that is right are apart, on average"), _SURVEY, "Guo et al. 2017"
    ),
    later("bleu"): Term(
        later("How many runs of one to four words an output shares with the known one, 0 to 100"),
        _SURVEY,
        "Papineni et al. 2002",
    ),
    later("steps"): Term(
        later("How many batches of texts the training learns from; each is one update of the weights"), _TRAIN
    ),
}


def sentence(name: str) -> str:
    """The meaning of a term, by its name or a widget's label, with its source."""
    term = TERMS[name.lower()]
    return say("{sentence} ({source})", sentence=say(term.sentence), source=term.source) if term.source else say(term.sentence)


@cache
def of_page(page: str) -> tuple[str, ...]:
    """The terms of a page, the basics first."""
    return tuple(sorted((name for name, term in TERMS.items() if page in term.pages), key=_place))


def found(words: str) -> list[str]:
    """The terms of all pages that have these words in their name, and then those that have them in their sentence."""
    words = " ".join(words.casefold().split())
    named = [name for name in TERMS if words in name.casefold() or words in say(name).casefold()]
    return [*named, *(name for name in TERMS if words in sentence(name).casefold() and name not in named)]


def _place(name: str) -> int:
    return BASICS.index(name) if name in BASICS else len(BASICS)
