#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include <remote/top.hpp>

#include "cli/context.hpp"

// The current state of servers and their jobs, for `remote top`.

namespace remote::cli {

struct TopLine {
  std::string text;            // for display in a terminal, in color if supported
  std::optional<JobId> job{};  // the job that the line is about
};

struct TopView {
  std::optional<std::size_t> width{};  // nullopt: lines are not cut
  std::optional<JobId> selected{};     // the job whose line is highlighted
  // A server without an answer for this long counts as silent.
  std::chrono::seconds silent_after{10};
};

// One block per server.
std::vector<TopLine> top_lines(const Context& context, const std::vector<ServerSample>& samples,
                               const TopView& view);

// "3 jobs of ~/other, 1 job of ~/third"; "" if there are none.
std::string other_jobs(const ServerLoad& load);
// The leases of a server: "ada 2 GPUs + 4 cores, bob waits"; "": none.
std::string leases_text(const ServerLoad& load);

// In bytes; null for unknown values.
nlohmann::json to_json(const ServerLoad& load);

// All samples as one JSON array, with a newline.
nlohmann::ordered_json top_json(const std::vector<ServerSample>& samples);

}  // namespace remote::cli
