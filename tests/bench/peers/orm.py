"""`POST /v1/send` the usual way: FastAPI, SQLAlchemy's ORM, one transaction a request.

Written as the two frameworks' own manuals have it: an async session for each request by dependency,
pydantic models in and out, selects for key and subscriber, `session.add` for message and outbox row,
one commit. It does less than the service: no rate limit, no idempotency, no events, no delivery.

Run as a script with the URL of an empty database it serves on a free port of 127.0.0.1.
"""

import hashlib
import json
import secrets
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import uvicorn
from fastapi import Depends, FastAPI, HTTPException, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import JSON, DateTime, ForeignKey, String, Text, event, select
from sqlalchemy.ext.asyncio import (
    AsyncEngine,
    AsyncSession,
    async_sessionmaker,
    create_async_engine,
)
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from tests.bench import load

API_KEY = "usual-key-usual-key-usual-key-usual-key"
PROJECT_ID = "prj_usual"
SUBSCRIBERS = 500

#: Connections, by what was quickest in trials: connections beyond the pool are opened and closed for
#: every request, and more writers to SQLite than these contend for its lock.
POSTGRESQL_POOL, SQLITE_POOL = 20, 2

TEXT = "Your order 4711 is on its way and arrives tomorrow between 10 and 12."


class Base(DeclarativeBase):
    """Of the tables."""


def _now() -> datetime:
    return datetime.now(UTC)


def _new_id(prefix: str) -> str:
    return f"{prefix}_{secrets.token_hex(12)}"


class Project(Base):
    __tablename__ = "projects"
    project_id: Mapped[str] = mapped_column(String(40), primary_key=True)
    name: Mapped[str]


class ApiKey(Base):
    __tablename__ = "api_keys"
    digest: Mapped[str] = mapped_column(String(64), primary_key=True)
    project_id: Mapped[str] = mapped_column(ForeignKey("projects.project_id"))


class Subscriber(Base):
    __tablename__ = "subscribers"
    subscriber_id: Mapped[str] = mapped_column(String(40), primary_key=True)
    project_id: Mapped[str] = mapped_column(ForeignKey("projects.project_id"), index=True)
    channel: Mapped[str]
    chat_id: Mapped[str]
    status: Mapped[str] = mapped_column(default="active")


class Message(Base):
    __tablename__ = "messages"
    message_id: Mapped[str] = mapped_column(String(40), primary_key=True)
    project_id: Mapped[str] = mapped_column(ForeignKey("projects.project_id"), index=True)
    subscriber_id: Mapped[str] = mapped_column(ForeignKey("subscribers.subscriber_id"), index=True)
    text: Mapped[str] = mapped_column(Text)
    status: Mapped[str] = mapped_column(default="queued")
    extra: Mapped[dict[str, Any] | None] = mapped_column(JSON)
    created_at: Mapped[datetime] = mapped_column(DateTime(timezone=True), default=_now)


class OutboxJob(Base):
    __tablename__ = "outbox"
    job_id: Mapped[str] = mapped_column(
        String(40), primary_key=True, default=lambda: _new_id("job")
    )
    name: Mapped[str]
    payload: Mapped[dict[str, Any]] = mapped_column(JSON)
    run_at: Mapped[datetime] = mapped_column(DateTime(timezone=True), default=_now, index=True)


class SendBody(BaseModel):
    model_config = ConfigDict(extra="forbid")

    subscriber_id: str
    text: str = Field(min_length=1, max_length=4000)
    metadata: dict[str, Any] | None = None


class QueuedMessageAnswer(BaseModel):
    message_id: str
    status: str


bearer = HTTPBearer()


async def get_session(request: Request) -> AsyncIterator[AsyncSession]:
    async with request.app.state.sessions() as session:
        yield session


Session = Annotated[AsyncSession, Depends(get_session)]


async def get_project_id(
    session: Session, credentials: Annotated[HTTPAuthorizationCredentials, Depends(bearer)]
) -> str:
    digest = hashlib.sha256(credentials.credentials.encode()).hexdigest()
    found = await session.scalar(select(ApiKey).where(ApiKey.digest == digest))
    if found is None:
        raise HTTPException(401, "unknown API key")
    return found.project_id


async def send(
    body: SendBody, session: Session, project_id: Annotated[str, Depends(get_project_id)]
) -> QueuedMessageAnswer:
    subscriber = await session.scalar(
        select(Subscriber).where(
            Subscriber.project_id == project_id, Subscriber.subscriber_id == body.subscriber_id
        )
    )
    if subscriber is None:
        raise HTTPException(404, "there is no such subscriber")
    message = Message(
        message_id=_new_id("msg"),
        project_id=project_id,
        subscriber_id=subscriber.subscriber_id,
        text=body.text,
        extra=body.metadata,
    )
    session.add(message)
    session.add(OutboxJob(name="deliver", payload={"message_id": message.message_id}))
    await session.commit()
    return QueuedMessageAnswer(message_id=message.message_id, status=message.status)


def make_app(url: str) -> FastAPI:
    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        engine = _engine(url)
        app.state.sessions = async_sessionmaker(engine, expire_on_commit=False)
        await _fill(engine)
        yield
        await engine.dispose()

    app = FastAPI(lifespan=lifespan)
    app.post("/v1/send", status_code=202)(send)
    return app


def _engine(url: str) -> AsyncEngine:
    if url.startswith("postgresql:"):
        return create_async_engine(
            url.replace("postgresql:", "postgresql+asyncpg:", 1),
            pool_size=POSTGRESQL_POOL,
            max_overflow=0,
        )
    engine = create_async_engine(
        url.replace("sqlite:", "sqlite+aiosqlite:", 1), pool_size=SQLITE_POOL, max_overflow=0
    )

    # As SQLAlchemy's manual has it for transactions that SQLite keeps apart; IMMEDIATE, since every
    # one of them reads before it writes.
    @event.listens_for(engine.sync_engine, "connect")
    def _connect(connection: Any, _record: Any) -> None:
        connection.isolation_level = None
        cursor = connection.cursor()
        for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON"):
            cursor.execute(f"PRAGMA {pragma}")
        cursor.close()

    @event.listens_for(engine.sync_engine, "begin")
    def _begin(connection: Any) -> None:
        connection.exec_driver_sql("BEGIN IMMEDIATE")

    return engine


async def _fill(engine: AsyncEngine) -> None:
    async with engine.begin() as connection:
        await connection.run_sync(Base.metadata.create_all)
    async with AsyncSession(engine) as session:
        session.add(Project(project_id=PROJECT_ID, name="Bench"))
        await session.flush()
        digest = hashlib.sha256(API_KEY.encode()).hexdigest()
        session.add(ApiKey(digest=digest, project_id=PROJECT_ID))
        for number in range(SUBSCRIBERS):
            session.add(
                Subscriber(
                    subscriber_id=_subscriber_id(number),
                    project_id=PROJECT_ID,
                    channel="messenger_a",
                    chat_id=f"chat-{number}",
                )
            )
        await session.commit()


def _subscriber_id(number: int) -> str:
    return f"sub_{number:024}"


def request(url: str, folder: Path) -> load.Request:
    """What the generators send to a running peer."""
    lines = folder / "bodies.jsonl"
    ids = (_subscriber_id(number) for number in range(SUBSCRIBERS))
    bodies = (json.dumps({"subscriber_id": id_, "text": TEXT}) for id_ in ids)
    lines.write_text("\n".join(bodies) + "\n")
    return load.Request(f"{url}/v1/send", lines, API_KEY)


def main() -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    print(f"peer listens on http://127.0.0.1:{listener.getsockname()[1]}, as usual", flush=True)  # noqa: T201 - its starter reads it
    config = uvicorn.Config(
        make_app(sys.argv[1]),
        loop="uvloop",
        http="httptools",
        log_level="warning",
        access_log=False,
    )
    uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    main()
