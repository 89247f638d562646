# SPDX-License-Identifier: MIT
"""Sphinx directives for the pages of spcomm.

``{api}``  the docstrings of public names, one a line: pieces.py makes it of a page's table

Others are in pieces.py, the teacher's slides in slides.py. And there is the role of single backquotes in
docstrings, which are names or parameters. Programs, outputs and drawings stand in the pages themselves: see
scripts/pages.py.
"""

import pieces
import slides
from docutils import nodes
from sphinx import addnodes
from sphinx.transforms import SphinxTransform
from sphinx.util.docutils import SphinxDirective, SphinxRole


class Api(SphinxDirective):
    """Each line is a name below spcomm: `startup`, or `Comm.send`."""

    has_content = True

    def run(self):
        names = [name.strip() for name in self.content if name.strip()]
        rest = "\n\n".join(f".. {kind_of(name)}:: spcomm.{name}" for name in names)
        return self.parse_text_to_nodes(f"```{{eval-rst}}\n{rest}\n```")


def kind_of(name):
    """The directive of autodoc for a public name."""
    import inspect

    import spcomm

    owner, _, last = name.rpartition(".")
    if owner:
        thing = inspect.getattr_static(getattr(spcomm, owner), last)
        is_value = inspect.isgetsetdescriptor(thing) or isinstance(thing, property)
        return "autoattribute" if is_value else "automethod"
    thing = getattr(spcomm, name)
    if isinstance(thing, type):
        return "autoexception" if issubclass(thing, BaseException) else "autoclass"
    return "autofunction" if callable(thing) and not isinstance(thing, spcomm.Op) else "autodata"


class Name(SphinxRole):
    """A public name becomes a link; a parameter stays what it is. What is dotted has to be a name."""

    def run(self):
        text = nodes.unescape(self.text)
        target = text.removesuffix("()")
        literal = nodes.literal(text, text, classes=["xref", "py"])
        if not target.replace(".", "").isidentifier():
            return [nodes.literal(text, text)], []
        reference = addnodes.pending_xref(
            text,
            literal,
            refdomain="py",
            reftype="obj",
            reftarget=target.removeprefix("spcomm."),
            refexplicit=False,
            refwarn="." in target,
            **{"py:module": "spcomm", "py:class": self.env.ref_context.get("py:class"), "spcomm-name": True},
        )
        reference["refspecific"] = False
        self.set_source_info(reference)
        return [reference], []


class BothSchemes(SphinxTransform):
    """A picture NAME-light.svg stands for itself, and for NAME-dark.svg where the page is dark."""

    default_priority = 500

    def apply(self):
        for light in list(self.document.findall(nodes.image)):
            name, is_light, kind = light["uri"].rpartition("-light.")
            if is_light:
                dark = light.deepcopy()
                dark["uri"] = f"{name}-dark.{kind}"
                dark["classes"].append("only-dark")
                light["classes"].append("only-light")
                light.parent.insert(light.parent.index(light) + 1, dark)


def elsewhere(_app, env, node, content):
    """A name without a dot, or of another package, is none; attributes stand with their class."""
    import spcomm

    first, dot, rest = node["reftarget"].partition(".")
    if (node.get("refdomain"), node["reftype"]) != ("py", "obj"):
        return None
    if not dot or first not in spcomm.__all__:
        return content
    if not hasattr(getattr(spcomm, first), rest):
        return None
    node["reftarget"], builder = first, env.app.builder
    return env.domains.python_domain.resolve_xref(env, node["refdoc"], builder, "obj", first, node, content)


def setup(app):
    app.add_directive("api", Api)
    app.add_role("name", Name())
    app.connect("missing-reference", elsewhere)
    app.add_transform(BothSchemes)
    app.add_config_value("spcomm_run_notebooks", True, "env", types=[bool])
    app.connect("builder-inited", pieces.run_notebooks)
    app.connect("source-read", pieces.expand)
    app.connect("build-finished", slides.write)
    app.connect("build-finished", pieces.list_for_programs)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
