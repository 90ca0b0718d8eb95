#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/host/descriptor.hpp"
#include "agent/host/path.hpp"

// Small files in a job's folder. The job can replace them with anything, so only regular files are read, and
// links are not followed.

namespace remote::agent {

// Returns at most `most` bytes; nullopt if the file cannot be read.
std::optional<std::string> read_job_file(const Path& path, std::size_t most = 4096);
// Returns the first line, without its newline. Returns nullopt if it has no newline, because the file is
// empty or incomplete.
std::optional<std::string> read_job_line(const Path& path);
// Returns the words of the first line; empty if there is none.
std::vector<std::string> read_job_words(const Path& path);

// Writes the whole text. Returns false after an error, such as a full disk.
bool write_whole(int fd, std::string_view text);
// Writes "remote: TEXT" to stderr.
void print_error(std::string_view text);
// Takes an exclusive flock. Returns false if another process keeps it for longer than `limit`.
bool lock_file(int fd, std::chrono::milliseconds limit);
// 16 hexadecimal digits.
std::string make_random_name();
// Returns an open file in memory with the text, at its beginning, for RunRequest::input.
Descriptor hold_text(std::string_view text);
// Opens the file with these flags (O_APPEND, O_TRUNC, O_EXCL) and writes the text. Creates a missing file
// with mode 0600.
bool write_job_file(const Path& path, std::string_view text, int flags);

}  // namespace remote::agent
