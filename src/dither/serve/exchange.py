"""What goes over the wire: the bodies of requests and of answers, as pydantic checks them and OpenAPI shows them.

Numbers are finite, and no number is taken from a text. A field that is not there is refused. What a field means, and
what values it may have beyond its type, is said by `Live`.
"""

import math
from types import NoneType
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, WithJsonSchema

LARGEST = 2**53  # of a whole number, up to which a float holds all of them

Number: TypeAlias = Annotated[float, Field(strict=True, allow_inf_nan=False)]
Whole: TypeAlias = Annotated[int, Field(strict=True, ge=-LARGEST, le=LARGEST)]
Text: TypeAlias = Annotated[str, StringConstraints(strict=True, max_length=100_000)]
Id: TypeAlias = Annotated[str, StringConstraints(strict=True, min_length=1, max_length=1000)]
Flag: TypeAlias = Annotated[bool, Field(strict=True)]


def _value(value: Any) -> Any:
    """A value of a field. Raises ValueError for one that no field has."""
    for one in value if type(value) is list else (value,):
        kind = type(one)
        if not (
            kind in (str, bool, NoneType)
            or (kind is int and abs(one) <= LARGEST)
            or (kind is float and math.isfinite(one))
        ):
            raise ValueError("a value must be a text, true, false, null, a finite number (whole: to 2^53), or a list")
    return value


_SCALARS: list[dict[str, str]] = [{"type": kind} for kind in ("string", "boolean", "null", "number")]
_SHOWN = {"anyOf": [*_SCALARS, {"type": "array", "items": {"anyOf": _SCALARS}}]}
Value: TypeAlias = Annotated[Any, AfterValidator(_value), WithJsonSchema(_SHOWN)]
Record: TypeAlias = dict[Text, Value]
Arm: TypeAlias = Id | Whole
Arms: TypeAlias = list[Arm] | list[Record] | dict[Text, Record | None]
Row: TypeAlias = list[Number]


OFFERED = (
    "Ids of the arms on offer; records; or id: record, null where the catalogue has it. None: all of the catalogue"
)


class Body(BaseModel):
    """The body of a request."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class AnyDecide(Body):
    """What may be asked of a decision, or of many."""

    arms: Arms | None = Field(None, description=OFFERED)
    minimum: Row | dict[Text, Number] | None = Field(None, description="The least probability of each arm, or by id")
    costs: Row | dict[Text, Number] | None = Field(None, description="What a show takes of the arm's budgets, or by id")
    baseline: Arm | None = Field(None, description="The arm of the bandit's baseline, where it is another one")
    fallback: Arm | None = Field(None, description="The arm that is shown while the store cannot be reached")


class Decide(AnyDecide):
    """One request for a decision."""

    id: Id | None = Field(None, description="Of the decision. With it, the same request may be sent again")
    context: Record | None = Field(None, description="The fields of the context, where the bandit has features")
    X: list[Row] | Row | None = Field(None, description="Features in place of a context: (K, d), or (d,) with slots")
    mask: list[Flag] | None = Field(None, description="(K,) Which arms are on offer")
    values: Row | None = Field(None, description="(K,) What a unit of reward is worth")
    extra: Record | None = Field(None, description="Columns of your own, kept in the log")

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "id": "visit-17",
                    "context": {"country": "AT"},
                    "arms": ["a17", "a23", "a5"],
                    "extra": {"user": "u7"},
                }
            ]
        }
    )


class DecideMany(AnyDecide):
    """Requests for decisions that are made together: all of them are stored, or none."""

    ids: list[Id] | None = Field(None, description="(B,) Of the decisions. With them, it may be sent again")
    contexts: list[Record] | None = Field(None, description="(B,) The fields of each context")
    X: list[list[Row]] | list[Row] | None = Field(None, description="In place of contexts: (B, K, d), or (B, d)")
    mask: list[list[Flag]] | None = Field(None, description="(B, K) Which arms are on offer")
    values: list[Row] | None = Field(None, description="(B, K) What a unit of reward is worth")
    extra: dict[Text, list[Value]] | None = Field(None, description="Columns of your own, (B,) values each")

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "ids": ["visit-18", "visit-19"],
                    "contexts": [{"country": "AT"}, {"country": "CH"}],
                    "arms": ["a17", "a23"],
                }
            ]
        }
    )


class DecidedOne(BaseModel):
    """A decision that is in the ledger."""

    id: str = Field(description="What its reward is sent with")
    arm: str | int = Field(description="The id of the arm where there are ids, else its position")
    place: int = Field(description="The position of the arm in the request; with disjoint slots its slot")
    propensity: float | None = Field(description="The probability of the arm at this moment; null: it is not known")
    propensity_kind: Literal["exact", "monte_carlo", "estimated", "none"]
    propensity_se: float | None = Field(description="Its standard error; null where it is exact")
    z: float | None = Field(description="The number that was drawn, where the policy draws one for all arms")
    fallback: bool = Field(description="Whether the store could not be reached, so that nothing was drawn")


class DecidedMany(BaseModel):
    """Decisions that are in the ledger, in the order of the request."""

    decisions: list[DecidedOne]


Time: TypeAlias = Number | Annotated[str, StringConstraints(strict=True, max_length=100)]


class Reward(Body):
    """The reward of one decision."""

    id: Id = Field(description="Of the decision")
    reward: Number
    part: Id | None = Field(None, description="Which of several rewards of one decision this is")
    time: Time | None = Field(None, description="When it came: ISO 8601, or seconds since 1970; none: now")

    model_config = ConfigDict(json_schema_extra={"examples": [{"id": "visit-17", "reward": 1.0}]})


class RewardMany(Body):
    """Rewards that are taken together: all of them, or none."""

    ids: list[Id] = Field(description="(n,) Of the decisions")
    rewards: Row = Field(description="(n,)")
    part: Id | None = Field(None, description="Which of several rewards of each decision this is")
    time: Time | None = Field(None, description="When they came: ISO 8601, or seconds since 1970; none: now")

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"ids": ["visit-18", "visit-19"], "rewards": [1.0, 0.0]}]}
    )


class Taken(BaseModel):
    """What became of a reward: counted, known (the same again), or late. Another value for the same is refused."""

    answer: Literal["counted", "known", "late"]


class TakenMany(BaseModel):
    """What became of each reward."""

    answers: list[Literal["counted", "known", "conflict", "late"]]


class Correct(Reward):
    """Another reward for a decision, in the place of the one that counts."""

    reward: Number = Field(description="The one that counts from now on")
    time: Time | None = Field(None, description="Of the correction: ISO 8601, or seconds since 1970; none: now")

    model_config = ConfigDict(json_schema_extra={"examples": [{"id": "visit-17", "reward": 0.0}]})


class Corrected(BaseModel):
    """What became of a correction: it counts now, or counted already."""

    answer: Literal["counted", "known"]


class Erase(Body):
    """Whose data is erased: the decisions with these ids, or with this value in a column."""

    ids: list[Id] | None = Field(None, description="Of the decisions; one that no decision has is passed over")
    where: dict[Text, Value] | None = Field(
        None,
        description="In place of ids: a column of your own, or a field of the records that are kept, and its value",
    )

    model_config = ConfigDict(json_schema_extra={"examples": [{"ids": ["visit-18"]}, {"where": {"user": "u7"}}]})


class Erased(BaseModel):
    """How many decisions were erased now. Where it is sent again, they are erased already, and it is 0."""

    erased: int


class BanditChange(BaseModel):
    """What has changed the bandit."""

    number: int = Field(description="Of the event, from 1 on")
    batch: int = Field(description="From which on the bandit is another one")
    time: str = Field(description="ISO 8601, UTC")
    author: str
    what: str = Field(description="The kind, such as change, promote, rollback or relearn")
    details: dict[str, Any]


class BanditChanges(BaseModel):
    """All events, in order."""

    events: list[BanditChange]


class ProblemDetails(BaseModel):
    """What was refused, and why (RFC 9457)."""

    type: str
    title: str
    status: int
    detail: str = Field(description="The rule, the value and the cure")
    errors: list[dict[str, Any]] | None = Field(None, description="Of a body that has another form: where, and what")


class Health(BaseModel):
    """Whether the service answers."""

    status: Literal["ok"]
