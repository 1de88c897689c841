"""A `Live` in a process of its own, which can be killed; and one in this process, with the same calls."""

import json
import multiprocessing
import os

import numpy as np
import sqlalchemy as sa

import dither
import sums_by_hand
from dither.live import learner
from dither.log.database import keeping, lessons, sql_tables


def unlimited(live):
    """Let the decisions of a ledger have the terms of an older version, which did not know what a bandit can learn."""
    with live.ledger.holding() as connection:
        for row in connection.execute(sa.select(sql_tables.changes)).all():
            terms = {name: value for name, value in json.loads(row.terms).items() if name != "support"}
            connection.execute(sa.update(sql_tables.changes).values(terms=json.dumps(terms)))
    live.ledger.look()


class Served:
    """The calls that a machine makes. What they return can be sent through a pipe."""

    def __init__(self, home, settings):
        learner.SWEEP = 0  # the learner looks at every write for what others have written
        self.live = dither.Live(home, **settings)
        self.live._learner.sum_seconds = self.live._learner._sums_due = 0  # and adds up what is new

    def choose(self, *given, **more):
        d = self.live.choose(*given, **more)
        return {"id": d.id, "arm": d.arm, "place": d.place, "propensity": d.propensity}

    def reward(self, *given, **more):
        return self.live.reward(*given, **more)

    def reward_of(self, id, r, time, part):
        return self.live.reward(id, r, time, part=part)

    def expire(self, now):
        return self.live.expire(now)

    def explain(self, id):
        """What is told of a decision, and the probability that the state which is made again gives to its arm."""
        e = self.live.explain(id)
        return e.to_dict(), float(e.propensity[e.chosen.arm])

    def erase(self, *given, **more):
        return self.live.erase(*given, **more)

    def pending(self):
        return [one.id for one in self.live.pending()]

    def learn(self):
        self.live.learn()
        return self.live.learns

    def change(self, what, *given):
        return getattr(self.live.catalogue, what)(*given)

    def correct(self, *given, **more):
        return self.live.correct(*given, **more)

    def change_terms(self, **new):
        self.live.change(**new)

    def replace_shadow(self, shadow):
        self.live.replace_shadow(shadow)

    def event(self, name, *given, **more):
        """An event of the bandit: change, promote, rollback or relearn."""
        getattr(self.live, name)(*given, **more)

    def history(self):
        """Rewards that teach, in order: batch, decision, reward, x; and the events: batch, what, details."""
        rewards, decisions = sql_tables.rewards.c, sql_tables.decisions.c
        fields = sa.select(rewards.batch, decisions.id, rewards.reward, decisions.x)
        fields = fields.join_from(sql_tables.rewards, sql_tables.decisions).order_by(rewards.seq)
        teaching = sql_tables.teaches(rewards.standing) & (rewards.part == "") & (rewards.batch > 0)
        with self.live.ledger.database.reading() as connection:
            rows = [tuple(row) for row in connection.execute(fields.where(teaching))]
        return rows, [(one.batch, one.what, one.details) for one in self.live.events()]

    def decided(self):
        """What each row says of how it was decided."""
        names = ["id", "learnt", "arm", "propensity", "floor", "policy"]
        return self.live.read().frame.select(names).to_dicts() if len(self.live.ledger) else []

    def the_lease_ends(self):
        with self.live.ledger.holding() as connection:
            connection.execute(sa.update(sql_tables.lease).values(expires=0))

    def stands(self):
        """What was learnt, and whether a replay gives the same bytes; None: others have erased since."""
        live, stands = self.live, self.live._learner.stands
        with live.ledger.database.reading() as connection:
            now = lessons.changes(connection)
        same = {"bandit": live.to_bytes() == live.replay(live.batch).to_bytes()}
        if stands.shadow is not None and now.shadow == stands.shadow_facts.number:
            same["shadow"] = live.to_bytes("shadow") == live.replay(live.batch, of="shadow").to_bytes()
        if stands.watch.facts.settings is not None:
            same["alarm"] = stands.watch.held() == live._learner.replay(live.batch).watch.held()
        return {
            "learns": live.learns,
            "batch": live.batch,
            "same": same if now.erased == live._learner._changes.erased else {},
            "observations": stands.bandit.observations,
            "theta": stands.bandit.theta,
            "shadow": None if stands.shadow is None else stands.shadow.theta,
            "slots": stands.bandit.slots,
        }

    def sums(self):
        """They are those of the rows; -> how many decisions and events are in those that are kept."""
        ledger = self.live.ledger
        sums_by_hand.same(ledger.days(), sums_by_hand.by_hand(ledger))
        with ledger.database.reading() as connection:
            return keeping.settings(connection).get("days")

    def tables(self):
        """Batches and their fences; the events of the catalogue, as the ledger has them and as this process does."""
        live, batches, arms = self.live, sql_tables.batches.c, sql_tables.arms.c
        with live.ledger.database.reading() as connection:
            made = connection.execute(sa.select(batches.number, batches.fence).order_by(batches.number)).all()
            events = connection.execute(sa.select(arms.version, arms.what, arms.id).order_by(arms.version)).all()
        return [tuple(row) for row in made], [tuple(row) for row in events]

    def arms(self):
        return self.live.catalogue.records, self.live.catalogue.version

    def events_of(self, id):
        """The rewards that a decision has received, in order: part, reward, what they count as."""
        rewards, decisions = sql_tables.rewards.c, sql_tables.decisions.c
        with self.live.ledger.database.reading() as connection:
            number = connection.scalar(sa.select(decisions.number).where(decisions.id == id))
            mine = sa.select(rewards.part, rewards.reward, rewards.standing).where(rewards.decision == number)
            found = connection.execute(mine.order_by(rewards.seq)).all()
        return [(part or None, r, standing) for part, r, standing in found if standing != "whole"]

    def rows(self):
        """The log: ids, features, arms, versions, and which was shown; and X again, as the catalogue has it."""
        seen = self.live.read()
        names = [name for name in ("id", "features", "arms", "arm", "catalogue") if name in seen.frame.columns]
        return seen.frame.select(names).to_dicts()

    def encoded(self, version, context, arms):
        return self.live.catalogue.at(version).encode(context, arms)

    def close(self):
        self.live.close()


class Here:
    """In this process. It cannot be killed."""

    def __init__(self, home, settings):
        self._served = Served(home, settings)

    def call(self, name, *given, **more):
        return getattr(self._served, name)(*given, **more)

    def close(self):
        self._served.close()


class Away:
    """In a process of its own."""

    def __init__(self, home, settings):
        os.environ["OMP_NUM_THREADS"] = "1"  # so that bits can be compared
        context = multiprocessing.get_context("forkserver")  # whose server has no connection that a fork would share
        context.set_forkserver_preload(["dither.live", "pytest", "alembic.command", "psycopg"])
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, home, settings), daemon=True)
        self._process.start()
        theirs.close()
        self._answer()

    def call(self, name, *given, **more):
        self._pipe.send((name, given, more))
        return self._answer()

    def kill(self, *unanswered, **more):
        """Kill the process with SIGKILL. unanswered, more : a call that it is just told of, with its arguments."""
        if unanswered:
            self._pipe.send((unanswered[0], unanswered[1:], more))
        self._process.kill()
        self._process.join()
        self._pipe.close()

    def close(self):
        if self._process.is_alive():
            self.call("close")
            self.kill()

    def _answer(self):
        fine, said = self._pipe.recv()
        if not fine:
            raise said
        return said


def _serve(pipe, home, settings):
    np.seterr(all="ignore")
    try:
        served = Served(home, settings)
    except Exception as error:
        pipe.send((False, error))
        return
    pipe.send((True, None))
    while True:
        name, given, more = pipe.recv()
        try:
            said = True, getattr(served, name)(*given, **more)
        except Exception as error:
            said = False, error
        pipe.send(said)
