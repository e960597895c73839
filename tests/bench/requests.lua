-- The requests that wrk makes: the lines of the file LOAD_LINES in turn, as bodies of POSTs or as
-- paths of GETs. With LOAD_RUN each has an Idempotency-Key of its own. What it found is one line of
-- JSON.

local MARK = "KEY-KEY-KEY"

local requests = {}
local run = os.getenv("LOAD_RUN")
local turn, sent = 0, 0

function init()
  wrk.method = os.getenv("LOAD_METHOD")
  wrk.headers["Authorization"] = os.getenv("LOAD_AUTHORIZATION")
  if wrk.method == "POST" then
    wrk.headers["Content-Type"] = os.getenv("LOAD_TYPE")
  end
  if run then
    wrk.headers["Idempotency-Key"] = MARK
  end
  for line in io.lines(os.getenv("LOAD_LINES")) do
    local whole = wrk.method == "POST" and wrk.format(nil, nil, nil, line) or wrk.format(nil, line)
    -- Cut where the key belongs: formatting anew for each request would slow the generator down.
    local from, to = whole:find(MARK, 1, true)
    table.insert(requests, run and {whole:sub(1, from - 1), whole:sub(to + 1)} or whole)
  end
end

function request()
  turn = turn % #requests + 1
  local made = requests[turn]
  if run then
    sent = sent + 1
    return made[1] .. run .. "-" .. sent .. made[2]
  end
  return made
end

function done(summary, latency)
  local errors = summary.errors
  print(string.format(
    '{"requests": %d, "failed": %d, "seconds": %f, "p50_ms": %f, "p99_ms": %f}',
    summary.requests,
    errors.connect + errors.read + errors.write + errors.status + errors.timeout,
    summary.duration / 1e6,
    latency:percentile(50) / 1e3,
    latency:percentile(99) / 1e3
  ))
end
