"""Every row of the table of published protocols as a value: the proof that the schema has room."""

from __future__ import annotations

from typing import Any

from runs.protocols.presets import load_preset, preset_names
from runs.protocols.spec import (
    Agent,
    Aggregation,
    AgreementStep,
    Calibration,
    Challenges,
    Decoding,
    Drafts,
    DynamicSelection,
    Edge,
    GeneratedExperts,
    JudgeSettings,
    Moderator,
    Operator,
    Output,
    Prompts,
    Protocol,
    RolePrompts,
    Selection,
    Stopping,
    Summary,
    Topology,
    Verifier,
)

ASK = "{{question}}\n{{answer_format}}"
REVISE = "{{question}}\n{{peers}}\n{{answer_format}}"
JUDGE = JudgeSettings(prompt="Which is better?")


def agents(count: int, **fields: Any) -> tuple[Agent, ...]:
    return tuple(Agent(id="abcdefgh"[i], **fields) for i in range(count))


def protocol(name: str, members: tuple[Agent, ...], rounds: int, **fields: Any) -> Protocol:
    prompts = Prompts(initial=ASK, revision=REVISE if rounds else "")
    return Protocol(
        **{"name": name, "agents": members, "revision_rounds": rounds, "prompts": prompts, **fields}
    )


def _smit() -> list[Protocol]:
    told = Prompts(initial=ASK, revision=REVISE + "\nAgree in {{agreement_intensity}} % of cases.")
    condensed = Summary(prompt="Condense.")
    return [
        protocol(
            "society_of_minds_smit_2024",
            agents(3),
            1,
            operator=Operator(kind="sequential"),
            selection=Selection(agreement_intensity_percent=90),
            prompts=told,
        ),
        protocol(
            "society_of_minds_smit_2024_summary",
            agents(3),
            1,
            selection=Selection(show="summary", summary=condensed),
            prompts=Prompts(initial=ASK, revision="{{question}}\n{{summary}}"),
        ),
    ]


def _liang(name: str, sees: Any) -> Protocol:
    sides = (
        Agent(id="affirmative", role="affirmative", side="yes"),
        Agent(id="negative", role="negative", side="no"),
    )
    return protocol(
        name,
        sides,
        3,
        initialisation="sequential",
        operator=Operator(kind="sequential", permutation=("affirmative", "negative")),
        prompts=Prompts(
            initial=ASK,
            revision=REVISE,
            by_role={"negative": RolePrompts(initial="{{question}}\nThey say:\n{{peers}}")},
        ),
        stopping=Stopping(moderator=Moderator(prompt="Do you prefer a side?")),
        aggregation=Aggregation(
            kind="judge", judge=JudgeSettings(prompt="Decide.", mode="transcript", sees_rounds=sees)
        ),
    )


def _chateval() -> list[Protocol]:
    referees = (Agent(id="public", role="public"), Agent(id="critic", role="critic"))
    shared: dict[str, Any] = {
        "turns_per_round": 2,
        "output": Output(candidate_scores=True),
        "aggregation": Aggregation(kind="summed_scores", candidate_orders="both"),
    }
    return [
        protocol(
            "chateval_2023_one_by_one",
            referees,
            1,
            initialisation="sequential",
            operator=Operator(kind="sequential"),
            selection=Selection(rounds="all", identities="roles"),
            **shared,
        ),
        protocol("chateval_2023_simultaneous", referees, 1, **shared),
        protocol(
            "chateval_2023_summariser",
            referees,
            1,
            selection=Selection(show="summary", summary=Summary(prompt="Condense the round.")),
            **shared,
        ),
    ]


def _khan() -> list[Protocol]:
    judge = JudgeSettings(
        prompt="Which answer is right?",
        mode="transcript",
        orders="both",
        sees_rounds="all",
        sees_evidence=False,
        may_ask=True,
    )
    shared: dict[str, Any] = {
        "selection": Selection(
            show="transcript", rounds="all", quotes_verified=True, own_history="all"
        ),
        "verifiers": (Verifier(id="quote", kind="exact_quote", scope="occurs in the passage"),),
        "output": Output(min_words=70, max_words=150),
        "aggregation": Aggregation(kind="judge", judge=judge),
    }
    debaters = (Agent(id="a", side="correct"), Agent(id="b", side="incorrect"))
    consultant = (Agent(id="a", role="consultant", side="incorrect"),)
    return [
        protocol("khan_2024_debate", debaters, 3, **shared),
        protocol("khan_2024_consultancy", consultant, 3, **shared),
    ]


def _irving() -> Protocol:
    return protocol(
        "irving_2018",
        (Agent(id="a", side="correct"), Agent(id="b", side="incorrect")),
        4,
        operator=Operator(kind="sequential"),
        selection=Selection(show="transcript", rounds="all"),
        aggregation=Aggregation(
            kind="judge", judge=JudgeSettings(by="person", prompt="Who is right?", orders="given")
        ),
    )


def _reconcile(name: str, calibration: Calibration) -> Protocol:
    families = tuple(
        Agent(id=i, model=m) for i, m in zip("abc", ("gpt", "bard", "claude"), strict=True)
    )
    return protocol(
        name,
        families,
        2,
        selection=Selection(show="answer_groups", largest_groups=2, include_self=True),
        output=Output(confidence=True),
        stopping=Stopping(unanimous=True),
        aggregation=Aggregation(kind="weighted", calibration=calibration),
    )


def _dylan() -> Protocol:
    return protocol(
        "dylan_2023",
        tuple(Agent(id=i, persona=f"You are expert {i}.") for i in "abcd"),
        2,
        selection=Selection(
            order="seeded_shuffle",
            dynamic=DynamicSelection(
                kind="keep_top", model="ranker", prompt="Rank.", kept=2, from_round=2
            ),
        ),
        output=Output(peer_rating_max=5),
        stopping=Stopping(agreement_threshold=2 / 3),
    )


def _group_debate() -> Protocol:
    return protocol(
        "group_debate",
        agents(4),
        2,
        topology=Topology(kind="groups", groups=(("a", "b"), ("c", "d"))),
        selection=Selection(summary=Summary(prompt="Condense.", scope="other_groups")),
        prompts=Prompts(initial=ASK, revision=REVISE + "\nOther groups:\n{{summary}}"),
    )


def _devils_advocate() -> Protocol:
    return protocol(
        "devils_advocate",
        (*agents(3), Agent(id="d", role="advocate", votes=False)),
        2,
        selection=Selection(against_majority=("d",)),
        prompts=Prompts(
            initial=ASK,
            revision=REVISE,
            by_role={"advocate": RolePrompts(revision="Against {{majority}}:\n{{peers}}")},
        ),
    )


def _mallm() -> list[Protocol]:
    pairs = tuple(Edge(source=s, reader=r) for s, r in ("ab", "ba", "bc", "cb"))
    shapes: dict[str, dict[str, Any]] = {
        "memory": {"selection": Selection(rounds="all", last_turns=2)},
        "report": {"topology": Topology(kind="star", hub="a")},
        "relay": {"topology": Topology(kind="ring", bidirectional=False)},
        "debate": {"topology": Topology(kind="custom", edges=pairs)},
        "collective_refinement": {"operator": Operator()},
    }
    decisions: dict[str, dict[str, Any]] = {
        "memory": {"stopping": Stopping(agreement_threshold=0.5)},
        "report": {"aggregation": Aggregation(kind="approval")},
        "relay": {"aggregation": Aggregation(kind="cumulative", points=10)},
        "debate": {
            "stopping": Stopping(
                agreement_steps=(
                    AgreementStep(from_round=0, threshold=0.75),
                    AgreementStep(from_round=5, threshold=0.5),
                )
            ),
            "aggregation": Aggregation(kind="ranked", points=5),
        },
        "collective_refinement": {
            "stopping": Stopping(unanimous=True),
            "aggregation": Aggregation(kind="judge", judge=JUDGE),
        },
    }
    return [
        protocol(
            f"mallm_{name}",
            agents(3),
            10,
            **{
                "initialisation": "blind",
                "operator": Operator(kind="sequential"),
                "generated_experts": GeneratedExperts(prompt="Name three experts."),
                **shape,
                **decisions[name],
            },
        )
        for name, shape in shapes.items()
    ]


def _case_study() -> list[Protocol]:
    people = tuple(Agent(id=i, persona=f"You are participant {i}.") for i in "abcd")
    shared: dict[str, Any] = {
        "drafts": Drafts(count=2, judge=JUDGE),
        "aggregation": Aggregation(kind="none"),
    }
    silencing = DynamicSelection(kind="rank_and_silence", prompt="Rank.", silenced=1)
    return [
        protocol(
            "wr",
            people,
            1,
            initialisation="sequential",
            operator=Operator(kind="sequential", this_round_only=True),
            **shared,
        ),
        protocol("cr", people, 1, **shared),
        protocol("ra_cr", people, 1, selection=Selection(dynamic=silencing), **shared),
        protocol("ni", people, 1, topology=Topology(kind="none"), **shared),
    ]


def _challenge_and_check() -> Protocol:
    members = (
        Agent(id="a", role="reviser"),
        Agent(id="b", role="reviser"),
        Agent(id="c", role="challenger", tools=("python",)),
    )
    return protocol(
        "challenge_and_check",
        members,
        2,
        selection=Selection(show="claims", targeted_challenges=True),
        output=Output(format="json", claims=True, change_reason=True),
        challenges=Challenges(challengers=("c",)),
        verifiers=(
            Verifier(id="tests", kind="python_tests", decisive=True, scope="the given cases"),
            Verifier(id="second_look", kind="model", model="checker", prompt="Is it so?"),
        ),
        stopping=Stopping(no_open_challenges=True, decisive_checks_passed=True),
    )


def _async_gossip() -> Protocol:
    return protocol(
        "async_gossip",
        agents(5, decoding=Decoding(temperature=0.7)),
        4,
        operator=Operator(
            kind="asynchronous", staleness_limit=2, on_conflict="recompute", update_budget=20
        ),
        topology=Topology(kind="k_regular", k=2),
    )


SHIPPED = {name: load_preset(name) for name in preset_names()}

LATER = {
    p.name: p
    for p in (
        *_smit(),
        _liang("liang_2023", "first"),
        _liang("liang_2023_corrected", "last"),
        *_chateval(),
        *_khan(),
        _irving(),
        _reconcile(
            "reconcile_2023",
            Calibration(buckets=((0.6, 0.1), (0.8, 0.3), (0.9, 0.5), (0.99, 0.8), (1.0, 1.0))),
        ),
        _reconcile("reconcile_2023_corrected", Calibration(calibrator="platt-1")),
        _dylan(),
        _group_debate(),
        _devils_advocate(),
        *_mallm(),
        *_case_study(),
        _challenge_and_check(),
        _async_gossip(),
    )
}

PUBLISHED = {**SHIPPED, **LATER}
