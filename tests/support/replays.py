"""The bandits of a ledger after many batches, each made of the one before where its course leads on."""

from dither.live import course
from dither.log.database import ledger_events


def bandits(live, batches):
    """The bandit after each of these batches, which are in order: the same object, as it is then."""
    taught = live._learner.replay(0)
    with live.ledger.database.reading() as connection:
        events = ledger_events.every(connection)
        for batch in batches:
            way = course.at(events, batch)
            if not taught.course.leads(way, taught.batch):
                taught.begin(connection, way)
            taught.up_to(connection, batch, way)
            taught.name(live.ledger.columns(None))
            yield taught.bandit
