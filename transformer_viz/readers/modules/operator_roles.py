"""The role of each of torch's operators: it makes weights, multiplies or moves them, masks scores, or none of it."""

from typing import Any, Literal

import torch

aten: Any = torch.ops.aten
SOFTMAXES = {aten._softmax, aten._safe_softmax}
PRODUCTS = {aten.mm: 0, aten.bmm: 0, aten.mv: 0, aten.dot: 0, aten.vdot: 0}
PRODUCTS |= {aten.addmm: 1, aten.baddbmm: 1, aten.addbmm: 1, aten.addmv: 1}
"""Products of matrices, each with the place of its first operand."""
VIEWS = {
    *(aten.view, aten._unsafe_view, aten.reshape, aten._reshape_alias, aten.unsqueeze, aten.squeeze, aten.expand, aten.alias),
    *(aten.detach, aten.clone, aten.contiguous, aten.lift_fresh),
}
"""Operators that keep the order of all elements."""
MOVES = {
    *(aten.transpose, aten.t, aten.permute, aten.slice, aten.select, aten.split, aten.split_with_sizes, aten.unbind),
    *(aten.chunk, aten.narrow, aten.as_strided, aten.constant_pad_nd, aten.index_select, aten.index, aten.flip, aten.roll),
    *(aten.repeat, aten.unfold, aten.cat, aten.stack, aten.tril, aten.triu, aten.gather, aten.diagonal),
}
"""Operators that move elements and change none."""
CARRIES = VIEWS | MOVES | {aten.mul, aten.div, aten._to_copy, aten.neg, aten.tanh}
"""Operators through which a mask of scores is followed back."""
MASKS = {aten.masked_fill, aten.masked_fill_, aten.where, aten.add, aten.add_, aten.sub, aten.sub_, aten.baddbmm}
MASKS |= {aten.index_put, aten.index_put_}
"""Operators that may mask scores."""
IN_PLACE = {aten.masked_fill_, aten.add_, aten.sub_, aten.index_put_, aten.mul_, aten.div_}
DROPOUTS = {aten.dropout, aten.feature_dropout, aten.alpha_dropout, aten.feature_alpha_dropout}
LAYOUTS = {
    *(aten.reshape, aten.contiguous, aten.flatten, aten.unflatten, aten.view_as, aten.expand_as, aten.movedim, aten.moveaxis),
    *(aten.swapaxes, aten.swapdims, aten.numpy_T, aten.mT, aten.to, aten.type_as),
}
"""Composed operators that only lay elements out anew, or cast them."""
WITH_BASE = {aten.chunk, aten.narrow}
"""Composed operators that torch hands over, like those that are not, within the code that tells a view its base."""
PLAIN = {aten.layer_norm, aten.rms_norm, aten.group_norm, aten.conv1d}
"""Composed operators whose parts are neither weights nor scores."""
SOURCES = {*PRODUCTS, aten.sum, aten.amax, aten.max, aten.logsumexp} - {aten.baddbmm}
"""Operators from which scores come, and what is taken of whole rows of them."""
Composed = Literal["linear", "attention", "dropout", "layout", "composed"]
Single = Literal["softmax", "product", "exponent", "source", "maximum", "mask", "carrier", "in place"]
Role = Literal[Single, Composed, "opaque", "derivative", "other"]
ROLES: dict[int, tuple[Role, Any]] = {}
"""By id, operators that were met: the role, and the operator, which so keeps its id. Its own hash is written in Python, and
would be called a thousand times in a pass."""
UNKNOWN = None, None


def role_of(func: Any) -> Role:
    """The treatment of an operator; `opaque` is attention as a whole, a fused kernel."""
    packet = func.overloadpacket
    if packet is aten._unpack_dual:
        return "derivative"
    if packet not in WITH_BASE and func.has_kernel_for_dispatch_key(torch._C.DispatchKey.CompositeImplicitAutograd):
        return _role_of_composed(packet)
    if packet in SOFTMAXES or packet is aten._log_softmax:
        return "softmax"
    if packet in PRODUCTS:
        return "product"
    if packet in (aten.exp, aten.exp_):
        return "exponent"
    if packet in IN_PLACE:
        return "in place"
    if packet is aten.max:
        return "maximum"
    if packet in SOURCES:
        return "source"
    if packet in MASKS:
        return "mask"
    if packet in CARRIES or packet in (aten.clamp, aten.clamp_min):
        return "carrier"
    name = packet._qualified_op_name.lower()
    words = ("scaled_dot_product", "multi_head_attention", "transformer_encoder_layer", "flash", "flex_attention", "attn")
    return "opaque" if any(word in name for word in words) else "other"


def _role_of_composed(packet: Any) -> Role:
    """The treatment of an operator that torch composes of others; `composed` is one that has to be taken apart."""
    if packet is aten.linear:
        return "linear"
    if packet is aten.scaled_dot_product_attention:
        return "attention"
    if packet in DROPOUTS:
        return "dropout"
    if packet in LAYOUTS:
        return "layout"
    return "other" if packet in PLAIN else "composed"
