#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/host/path.hpp"
#include "agent/job/regular_file.hpp"

// Reads the ends of a job's output files, and finds lines in them.

namespace remote::agent {

constexpr std::size_t longest_output_line = 2000;

// Returns the last bytes of a regular file; nullopt for other types. Does not block on a FIFO.
std::optional<std::string> read_end_of_file(const Path& path, std::size_t most, Links links = Links::follow);

// Returns the last `count` lines, without newlines.
std::vector<std::string_view> find_last_lines(std::string_view text, std::size_t count);

// Returns the output after the last line that separates attempts of a launch, restarts of torchrun's workers,
// or retries of a sweep point.
std::string_view find_last_attempt(std::string_view text);

// Returns the last `count` lines, restricted to the last attempt.
std::vector<std::string_view> find_lines_of_last_attempt(std::string_view text, std::size_t count);

}  // namespace remote::agent
