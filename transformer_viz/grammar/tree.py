"""A derivation: which templates and which words make a sentence. Drawing and reading both make one."""

from dataclasses import dataclass, field

from transformer_viz.grammar.grammar import ANY, Features, Item, Lexeme, Template


@dataclass
class Tree:
    """A template, what its variables have become, and what stands in its places.

    Attributes:
        template: how the phrase is made.
        bound: variable -> set of values.
        children: name of an item -> its word or phrase.
    """

    template: Template
    bound: Features
    children: "dict[str, Tree | Lexeme]" = field(default_factory=dict)

    def features(self) -> Features:
        """The features that the phrase shows to the one that it stands in."""
        shown = dict(self.template.constants)
        for feature, variable in self.template.variables:
            shown[feature] = self.bound.get(variable, ANY)
        return shown


def narrowed(bound: Features, item: Item, features: Features) -> Features | None:
    """The variables of a template after an item's word or phrase has shown its features; None where they do not agree."""
    for feature, values in item.constants.items():
        if not features.get(feature, ANY) & values:
            return None
    for feature, variable in item.variables:
        values = features.get(feature, ANY)
        if values == ANY:
            continue
        before = bound.get(variable, ANY)
        after = before & values
        if not after:
            return None
        if after != before:
            bound = {**bound, variable: after}
    return bound


def wanted(bound: Features, item: Item) -> Features:
    """The features that an item asks of its word or phrase."""
    asked = dict(item.constants)
    for feature, variable in item.variables:
        if variable in bound:
            asked[feature] = asked.get(feature, ANY) & bound[variable]
    return asked


def opened(template: Template, asked: Features) -> Features | None:
    """The variables of a template of which its phrase is asked for features; None where it has others."""
    for feature, values in template.constants.items():
        if not asked.get(feature, ANY) & values:
            return None
    bound: Features = {}
    for feature, variable in template.variables:
        if feature in asked:
            bound[variable] = bound.get(variable, ANY) & asked[feature]
            if not bound[variable]:
                return None
    return bound


def agrees(features: Features, asked: Features) -> bool:
    """Tells whether no feature is without a common value."""
    return all(features.get(feature, ANY) & values for feature, values in asked.items())
