"""A config form drawn from a recipe's JSON Schema, and read back from what the browser posts.

Inputs carry the dotted path of their field as name. What cannot be read as a number stays text in the raw config, so
that the schema refuses it at its field and the form shows again exactly what was typed.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..requests.numbers import whole_number
from .labels import bounds_words, words

ON = "__on"  # posted by the switch of an optional section
COUNT = "__count"  # posted by a list of sections
DRAWN = "__drawn"  # posted by a choice among sections: which one the posted fields belong to
MAX_ITEMS = 50
MOST_LISTED = 20
MOST_BRIEF, LONGEST_BRIEF = 6, 40  # of a folded group: fields, and characters of one


@dataclass(frozen=True)
class EmptyChoice:
    """Shown instead of an empty list: how to get something to choose."""

    text: str
    url: str = ""
    label: str = ""


@dataclass
class Input:
    """One field. `value` is the text shown; `changed` says that it differs from what the form compares with."""

    path: str
    label: str
    kind: str  # int, float, bool, choice, text, lines
    value: str
    help: str = ""
    unit: str = ""
    default: str = ""
    bounds: str = ""
    advanced: bool = False
    nullable: bool = False
    choices: tuple[str, ...] = ()
    source: str = ""  # the kind of row of the workspace that it names: the form that knows the rows fills `options`
    options: tuple[tuple[str, str], ...] = ()
    empty: str = ""  # the words of the empty option, if it is a choice
    nothing: EmptyChoice | None = None  # what is said where there are no `options`
    applies: bool = True  # False: the values beside it leave it without effect
    beside: str = ""  # the group that it stands in, if not its own
    names: tuple[str, ...] = ()  # what may be written in it
    about: Any = None  # what is known about the row that it names
    error: str = ""
    changed: bool = False
    was: str = ""

    @property
    def id(self) -> str:
        return "f-" + self.path.replace(".", "-")

    @property
    def checked(self) -> bool:
        return self.value == "true"

    @property
    def shown(self) -> bool:
        """Whether the field is shown. A field without effect is drawn but hidden, so that its value and its problem survive."""
        return self.applies or bool(self.error)

    @property
    def search(self) -> bool:
        """Whether there are too many options to look through: the form then asks for a few letters of the name."""
        return len(self.options) > MOST_LISTED

    @property
    def known(self) -> bool:
        """Whether the row that it names is offered."""
        return not self.value or any(value == self.value for value, _ in self.options)

    @property
    def brief(self) -> str:
        """The value in a few words, beside others; empty if there is nothing to say."""
        if self.kind == "bool":
            return self.label.lower() if self.checked else ""
        text = " ".join(self.value.split("\n"))
        if not text or len(text) > LONGEST_BRIEF:
            return ""
        return text if self.kind in ("choice", "text") else f"{self.label.lower()} {text}"


@dataclass
class FormGroup:
    """A section, an optional section (`optional`, switched on by `on`) or a list of sections (`items`).

    `chosen` names the section that was chosen if there are several; its first input is that choice.
    """

    path: str
    title: str
    help: str = ""
    inputs: list[Input] = field(default_factory=list)
    groups: list["FormGroup"] = field(default_factory=list)
    optional: bool = False
    on: bool = True
    is_list: bool = False
    items: list["FormGroup"] = field(default_factory=list)
    least: int = 0  # items that a list must keep
    error: str = ""
    chosen: str = ""
    applies: bool = True
    folded: bool = False  # drawn as one line that opens

    @property
    def id(self) -> str:
        return "g-" + self.path.replace(".", "-")

    def every_input(self) -> Iterator[Input]:
        """The inputs of the group and of everything inside it."""
        yield from self.inputs
        for group in [*self.groups, *self.items]:
            yield from group.every_input()

    def every_group(self) -> Iterator["FormGroup"]:
        """The group itself and everything inside it."""
        yield self
        for group in [*self.groups, *self.items]:
            yield from group.every_group()

    def places_to_fix(self, title: str = "") -> Iterator[tuple[str, str]]:
        """The id and the label of everything inside that has an error, in the order of the page; `title` stands before the labels."""
        if self.error:
            yield self.id, title or self.title
        yield from ((each.id, f"{title}: {each.label}" if title else each.label) for each in self.inputs if each.error)
        for child in self.groups:
            yield from child.places_to_fix(child.title)
        for number, item in enumerate(self.items, 1):
            yield from item.places_to_fix(f"{self.title} {number}")

    @property
    def shown(self) -> bool:
        return self.applies or bool(self.errors)

    @property
    def brief(self) -> list[tuple[str, bool]]:
        """The values that are set, as (words, whether it was changed): changed ones first."""
        if self.optional and not self.on:
            return [("off", False)]
        told = [
            (input.brief, input.changed)
            for input in self.inputs
            if input.shown and (input.changed or not input.advanced)
        ]
        for group in [*self.groups, *self.items]:
            if group.shown and group.optional and not group.on:
                told.append((f"no {group.title}", False))
            elif group.shown and group.optional:
                told.append((f"{group.title} {group.brief[0][0]}" if group.brief else group.title, group.changes > 0))
        found = [each for each in told if each[0]]
        return sorted(found, key=lambda each: not each[1])[:MOST_BRIEF]

    @property
    def changes(self) -> int:
        """The number of fields that differ from the values that the form compares with."""
        if not self.on:
            return 0
        mine = sum(item.changed and item.shown for item in self.inputs)
        return mine + sum(group.changes for group in [*self.groups, *self.items] if group.shown)

    @property
    def folds(self) -> int:
        """The number of advanced fields that are shown."""
        return sum(item.shown for item in self.advanced)

    @property
    def plain(self) -> list[Input]:
        return [item for item in self.inputs if not item.advanced]

    @property
    def advanced(self) -> list[Input]:
        return [item for item in self.inputs if item.advanced]

    @property
    def advanced_open(self) -> bool:
        """A folded field must not hide a problem or a change."""
        return any(item.error or (item.changed and item.shown) for item in self.advanced)

    @property
    def errors(self) -> int:
        mine = sum(bool(item.error) for item in self.inputs) + bool(self.error)
        return mine + sum(group.errors for group in [*self.groups, *self.items])


class Tree:
    """The schema with its references resolved: draws groups, and reads posted forms."""

    def __init__(self, schema: dict[str, Any]) -> None:
        self.root = schema
        self.defs: dict[str, Any] = schema.get("$defs", {})

    def draw(self, raw: Any, problems: Mapping[str, str], base: Any = None) -> FormGroup:
        """The form for `raw`, with `problems` (path -> message) at their fields and changes from `base` marked."""
        return self._group("", "Run", self.root, raw, problems, base)

    def defaults(self, raw: Any = None) -> dict[str, Any]:
        """The defaults; with `raw`, those of the sections that it chooses."""
        found: dict[str, Any] = self._default(self.root)
        for name, sub in self._properties(self.root).items():
            options = _options(sub)
            if options and isinstance(raw, dict):
                found[name] = self._filled(self._variant(sub, raw.get(name)))
        return found

    def read(self, post: Mapping[str, str]) -> dict[str, Any]:
        """The raw config of a posted form."""
        found: dict[str, Any] = self._read("", self.root, post)
        return found

    def item(self, path: str) -> Any:
        """Defaults of one item of the list at `path`; None if there is no such list."""
        node: dict[str, Any] = self.root
        for part in path.split("."):
            node, _ = self._open(self._properties(node).get(part, {}))
        return self._default(self._open(node["items"])[0]) if "items" in node else None

    def _open(self, schema: dict[str, Any]) -> tuple[dict[str, Any], bool]:
        """(schema without references, whether null is allowed). A choice among sections opens as its default."""
        if _options(schema):
            return self._variant(schema, None), False
        options = [option for option in schema.get("anyOf", []) if option.get("type") != "null"]
        if len(options) == 1:
            inner, _ = self._open(options[0])
            return {**inner, **_notes(schema)}, True
        if "$ref" in schema:
            inner = self.defs[schema["$ref"].rsplit("/", 1)[-1]]
            return {**inner, **_notes(schema)}, False
        return schema, False

    def _variant(self, schema: dict[str, Any], raw: Any) -> dict[str, Any]:
        """The section of a choice that `raw` names, the default one otherwise; its choosing field first, as a choice."""
        key, options = schema["discriminator"]["propertyName"], _options(schema)
        fallback = (schema.get("default") or {}).get(key, options[0])
        named = raw.get(key) if isinstance(raw, dict) else None
        reference = schema["discriminator"]["mapping"][named if named in options else fallback]
        inner, _ = self._open({"$ref": reference})
        fields = [(name, sub) for name, sub in inner["properties"].items() if name != key]
        rest = dict(sorted(fields, key=lambda field: "source" not in field[1]))  # whom it asks stands beside what it is
        mine = inner["properties"][key]
        choice = {**_notes(mine), "type": "string", "enum": options}
        return {**inner, "properties": {key: choice, **rest}}

    def _properties(self, schema: dict[str, Any]) -> dict[str, Any]:
        found: dict[str, Any] = schema.get("properties", {})
        return found

    def _default(self, schema: dict[str, Any]) -> Any:
        if "default" in schema:
            return schema["default"]
        opened, _ = self._open(schema)
        if "properties" in opened:
            return {name: self._default(sub) for name, sub in opened["properties"].items()}
        return opened.get("default")

    def _group(
        self, path: str, title: str, schema: dict[str, Any], raw: Any, problems: Mapping[str, str], base: Any
    ) -> FormGroup:
        raw = raw if isinstance(raw, dict) else {}
        base = base if isinstance(base, dict) else {}
        group = FormGroup(path, title, schema.get("description", ""), error=problems.get(path, ""))
        for name, sub in self._properties(schema).items():
            self._member(group, _join(path, name), name, sub, raw, problems, base)
        self._without_effect(group, schema, raw)
        _moved(group)
        return group

    def _without_effect(self, group: FormGroup, schema: dict[str, Any], raw: dict[str, Any]) -> None:
        """Marks the fields of a section that its other values leave without effect."""
        fields = self._properties(schema)

        def applies(name: str) -> bool:
            needed = fields[name].get("when")
            if needed is None:
                return True
            value = raw.get(needed["field"], self._default(fields[needed["field"]]))
            return applies(needed["field"]) and (value in needed["values"] if needed["values"] else bool(value))

        idle = {_join(group.path, name) for name in fields if not applies(name)}
        for item in group.inputs:
            item.applies = item.path not in idle
        for section in group.groups:
            section.applies = section.path not in idle

    def _member(
        self,
        group: FormGroup,
        path: str,
        name: str,
        sub: dict[str, Any],
        raw: dict[str, Any],
        problems: Mapping[str, str],
        base: dict[str, Any],
    ) -> None:
        value = raw.get(name, self._default(sub))
        before = base.get(name, self._default(sub))
        opened, nullable = (self._variant(sub, value), False) if _options(sub) else self._open(sub)
        if "properties" in opened:
            shown = value if value is not None else self._filled(opened)
            if _options(sub) and not _same_choice(sub, value, before):
                # against another section's values nothing compares: what is marked differs from this one's defaults
                key = sub["discriminator"]["propertyName"]
                before = {**self._filled(opened), key: before.get(key) if isinstance(before, dict) else None}
            child = self._group(path, words(name), opened, shown, problems, before)
            child.optional, child.on = nullable, value is not None
            child.chosen = opened["properties"][_key(sub)]["default"] if _options(sub) else ""
            group.groups.append(child)
        elif "properties" in self._open(opened.get("items", {}))[0]:
            child = FormGroup(
                path, words(name), opened.get("description", ""), is_list=True, error=problems.get(path, "")
            )
            child.least = opened.get("minItems", 0)
            child.items = self._items(path, opened["items"], value, before, problems)
            group.groups.append(child)
        else:
            default = self._default(sub)
            group.inputs.append(_input(path, name, opened, nullable, value, default, before, problems.get(path, "")))

    def _items(
        self, path: str, schema: dict[str, Any], value: Any, before: Any, problems: Mapping[str, str]
    ) -> list[FormGroup]:
        befores = before if isinstance(before, list) else []
        found = []
        for i, entry in enumerate(value if isinstance(value, list) else []):
            old = befores[i] if i < len(befores) else None
            item = self._variant(schema, entry) if _options(schema) else self._open(schema)[0]
            if _options(schema) and not _same_choice(schema, entry, old):
                old = {**self._filled(item), _key(schema): old.get(_key(schema)) if isinstance(old, dict) else None}
            drawn = self._group(f"{path}.{i}", f"{i + 1}", item, entry, problems, old)
            drawn.chosen = item["properties"][_key(schema)]["default"] if _options(schema) else ""
            found.append(drawn)
        return found

    def _filled(self, opened: dict[str, Any]) -> dict[str, Any]:
        return {name: self._default(sub) for name, sub in opened["properties"].items()}

    def _read(self, path: str, schema: dict[str, Any], post: Mapping[str, str]) -> Any:
        if _options(schema):
            return self._read_choice(path, schema, post)
        opened, nullable = self._open(schema)
        if "properties" in opened:
            if nullable and f"{path}.{ON}" not in post:
                return None
            return {name: self._read(_join(path, name), sub, post) for name, sub in opened["properties"].items()}
        if "properties" in self._open(opened.get("items", {}))[0]:
            length = min(whole_number(post.get(f"{path}.{COUNT}", "0")) or 0, MAX_ITEMS)
            return [self._read(f"{path}.{i}", opened["items"], post) for i in range(length)]
        return _value(opened, nullable, post.get(path))

    def _read_choice(self, path: str, schema: dict[str, Any], post: Mapping[str, str]) -> dict[str, Any]:
        """The section that is chosen now. If another one was drawn, the posted values are of that one: what was changed
        there and exists here comes along, the rest takes the defaults of the section that was just chosen."""
        key = _key(schema)
        name = post.get(f"{path}.{key}")
        drawn = self._variant(schema, {key: post.get(f"{path}.{DRAWN}", name)})
        given = {field: self._read(_join(path, field), sub, post) for field, sub in drawn["properties"].items()}
        wanted = self._variant(schema, {key: name})
        if wanted["properties"][key]["default"] == drawn["properties"][key]["default"]:
            return given
        defaults = self._filled(drawn)
        changed = {field: value for field, value in given.items() if value != defaults[field]}
        return {**self._filled(wanted), **{f: v for f, v in changed.items() if f in wanted["properties"]}}


def _moved(group: FormGroup) -> None:
    """Moves fields that belong to another group of the same section to it."""
    for each in [each for each in group.inputs if each.beside]:
        for other in group.groups:
            if other.path == _join(group.path, each.beside):
                group.inputs.remove(each)
                other.inputs.append(each)


def _options(schema: dict[str, Any]) -> list[str]:
    """Names of the sections to choose among; empty if there is no choice."""
    if "discriminator" not in schema:
        return []
    names = {reference: name for name, reference in schema["discriminator"]["mapping"].items()}
    return [names[option["$ref"]] for option in schema["oneOf"]]


def _key(schema: dict[str, Any]) -> str:
    return str(schema["discriminator"]["propertyName"])


def _same_choice(schema: dict[str, Any], one: Any, other: Any) -> bool:
    key = _key(schema)
    return isinstance(one, dict) and isinstance(other, dict) and one.get(key) == other.get(key)


def _notes(schema: dict[str, Any]) -> dict[str, Any]:
    return {
        key: schema[key]
        for key in ("description", "unit", "advanced", "default", "source", "when", "beside")
        if key in schema
    }


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _kind(schema: dict[str, Any]) -> str:
    if "enum" in schema:
        return "choice"
    kinds = {"integer": "int", "number": "float", "boolean": "bool", "array": "lines"}
    return kinds.get(schema.get("type", ""), "text")


def flatten(config: Any, prefix: str = "") -> dict[str, Any]:
    """`{"optim": {"lr": 1}}` -> `{"optim.lr": 1}`; items of lists are numbered, empty sections stay as they are."""
    if not isinstance(config, dict | list) or not config:
        return {prefix: config}
    out: dict[str, Any] = {}
    for key, value in config.items() if isinstance(config, dict) else enumerate(config):
        out.update(flatten(value, f"{prefix}.{key}" if prefix else str(key)))
    return out


def as_text(value: Any) -> str:
    """A config value as text, the way it can be typed again."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return f"{value:.12g}"
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return "\n".join(json.dumps(item, ensure_ascii=False)[1:-1] for item in value)
    return value if isinstance(value, str) else json.dumps(value)


def _input(
    path: str, name: str, schema: dict[str, Any], nullable: bool, value: Any, default: Any, before: Any, error: str
) -> Input:
    return Input(
        path=path,
        label=words(name),
        kind=_kind(schema),
        value=as_text(value),
        help=schema.get("description", ""),
        unit=schema.get("unit", ""),
        default=as_text(default),
        bounds="" if schema.get("source") else bounds_words(schema),  # of a row's number nobody thinks in bounds
        advanced=bool(schema.get("advanced")),
        nullable=nullable,
        choices=tuple(schema.get("enum", ())),
        source=schema.get("source", ""),
        beside=schema.get("beside", ""),
        error=error,
        changed=value != before,
        was=as_text(before),
    )


def _value(schema: dict[str, Any], nullable: bool, text: str | None) -> Any:
    kind = _kind(schema)
    if kind == "bool":
        return text is not None
    text = (text or "").strip() if kind != "lines" else (text or "")
    if nullable and not text:
        return None
    if kind in ("int", "float"):
        return _number(text, whole=kind == "int")
    if kind == "lines":
        return [_unescaped(line) for line in text.replace("\r\n", "\n").split("\n") if line]
    return text


def _number(text: str, *, whole: bool) -> int | float | str:
    """The number, or the text itself, which the schema then refuses at its field."""
    try:
        return int(text) if whole else float(text)
    except ValueError:
        return text


def _unescaped(line: str) -> str:
    try:
        return str(json.loads(f'"{line}"'))
    except ValueError:
        return line
