#pragma once

#include <cstddef>
#include <string>
#include <string_view>

// The program that runs on servers: src/server, built into the binary as one compressed archive. A server
// keeps it in
// ~/.cache/remote, by the digest of the archive; docs/protocol.md tells how it gets there.

namespace remote::server {

// sh text of one line that runs the program, which reads a request from stdin. It may stand between single
// quotes in every login shell: it has no quote of that kind, no backslash, no '!' and no line end.
const std::string& program_text();
// The command for a channel.
const std::string& program_command();
// The first line of its answer, before anything of the request is read: so much of the server works.
inline constexpr std::string_view program_here = "@remote1 here";
// The first line where the server has not got the program.
inline constexpr std::string_view program_needed = "@remote1 need";
// The version: the digest of the archive.
std::string_view program_digest();
// What is sent then, before the request once more.
const std::string& program_installation();

// The text of src/server/python/NAME, of one that is no part of the archive, as it is given to a command in a
// variable: burn.py, deep.py. Throws std::logic_error for another name.
std::string_view python_text(std::string_view name);

}  // namespace remote::server
