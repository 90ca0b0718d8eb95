#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include <remote/top.hpp>

#include "cli/context.hpp"

// Servers and their jobs at a moment, for `remote top`.

namespace remote::cli {

struct TopLine {
  std::string text;            // fit for a terminal, in colours where it has them
  std::optional<JobId> job{};  // that the line is about
};

struct TopView {
  std::optional<std::size_t> width{};  // nullopt: lines are whole
  std::optional<JobId> selected{};     // the job whose line is marked
  // After so long without an answer a server counts as silent.
  std::chrono::seconds silent_after{10};
};

// A block a server.
std::vector<TopLine> top_lines(const Context& context, const std::vector<ServerSample>& samples,
                               const TopView& view);

// "3 jobs of ~/other, 1 job of ~/third"; "" where there are none.
std::string other_jobs(const ServerLoad& load);
// "ada 2 GPUs + 4 cores, bob waits": what is leased of it, and by whom; "": nothing.
std::string leases_text(const ServerLoad& load);

// In bytes; null for what is not known.
nlohmann::json to_json(const ServerLoad& load);

// All samples as one JSON array, with a newline.
nlohmann::ordered_json top_json(const std::vector<ServerSample>& samples);

}  // namespace remote::cli
