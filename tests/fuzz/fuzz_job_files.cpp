#include <cstddef>
#include <cstdint>
#include <string_view>

#include "agent/host/processes.hpp"
#include "agent/job/json_lines.hpp"
#include "agent/job/record.hpp"
#include "promise.hpp"
#include "rules/job_history.hpp"
#include "wire/cbor.hpp"

// Files in a job's folder, which the job itself can write, and /proc/PID/stat, which contains a name chosen
// by the process. A parsed value stays the same when it is written and parsed again, and fits into a message.

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace remote;
  using namespace remote::agent;
  using fuzz::require;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto encode = [](const auto& message) { return wire::encode(message); };
  if (const auto line = parse_end(text)) {
    require(encode(wire::decode<wire::JobEnd>(encode(line->end))) == encode(line->end),
            "an end fits into a message");
    const auto again = parse_end(to_end_line(line->end));
    require(line->never_started || (again && again->end.how == line->end.how),
            "an end is written as it is read");
  }
  const auto entries = parse_json_lines<wire::JobEntry>(text);
  for (const wire::JobEntry& entry : entries) {
    require(wire::decode<wire::JobEntry>(encode(entry)) == entry, "an entry stays the same");
    require(wire::try_read_json<wire::JobEntry>(wire::to_json_text(entry)) == entry,
            "an entry is written as it is read");
  }
  const rules::JobHistory recorded = rules::fold(entries);
  require(!recorded.end || !recorded.never_starts_since, "a job that has ended has started");
  if (const auto by = parse_stop_word(text)) {
    require(parse_stop_word(to_stop_word(*by)) == by, "a stop word is written as it is read");
  }
  parse_process(text);  // its numbers come from the kernel
  return 0;
}
