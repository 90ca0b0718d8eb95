#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "agent/host/host.hpp"
#include "agent/host/path.hpp"

// Small files of the system, such as those in /proc.

namespace remote::agent {

// The content, truncated to `most` bytes; nullopt if the file cannot be read.
std::optional<std::string> read_file(const Path& path, std::size_t most = std::size_t{1} << 20U);
// The first line without its newline; "" if there is none.
std::string read_first_line(const Path& path);
// The lines without their newlines; empty if the file cannot be read.
std::vector<std::string> read_lines(const Path& path);
std::string read_host_name(const Host& host);
std::string read_stdin();

}  // namespace remote::agent
