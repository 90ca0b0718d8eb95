#pragma once

#include <cstddef>
#include <string_view>

// Written by the build (cmake/server_program.cmake).

namespace remote::server {

// The files of src/server that a server keeps: a compressed tar archive.
std::string_view archive();
// Its SHA-256 digest, in hexadecimal.
std::string_view archive_digest();
// The bytes of all files in it together.
std::size_t archive_content_size();
// The text of src/server/python/NAME, for programs that a request or a variable of a command contains. Throws
// std::logic_error for another name than burn.py, deep.py, flight.py and post.py.
std::string_view python_text(std::string_view name);

}  // namespace remote::server
