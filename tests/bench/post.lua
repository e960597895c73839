-- The requests that wrk makes: the bodies in the file LOAD_BODIES, one a line, in turn. What it
-- found is one line of JSON.

local requests = {}
local turn = 0

function init()
  wrk.method = "POST"
  wrk.headers["Content-Type"] = "application/json"
  wrk.headers["Authorization"] = "Bearer " .. os.getenv("LOAD_KEY")
  for body in io.lines(os.getenv("LOAD_BODIES")) do
    table.insert(requests, wrk.format(nil, nil, nil, body))
  end
end

function request()
  turn = turn % #requests + 1
  return requests[turn]
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
