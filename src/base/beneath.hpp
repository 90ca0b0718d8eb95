#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "base/files.hpp"

// Reads files in an untrusted folder, such as a cloned project: nothing in it can make this program read a
// file outside.

namespace remote {

// More than any text that a person writes.
inline constexpr std::uintmax_t max_text_bytes = std::uintmax_t{4} << 20U;

// Opens the regular file `name`, a relative path, for reading. Follows links only if they stay in `folder`,
// whose own path may contain links, and outside `.git` and `.remote`, which contain secrets. Empty if there
// is no such file. Throws Error (usage) for other links, for ".." that leaves the folder, and for folders,
// FIFOs and devices, which are not opened.
UniqueFd open_beneath(const std::filesystem::path& folder, const std::filesystem::path& name);

// The content of such a file; nullopt if it does not exist. Also throws Error (usage) if it is larger than
// `most_bytes`.
std::optional<std::string> read_beneath(const std::filesystem::path& folder,
                                        const std::filesystem::path& name,
                                        std::uintmax_t most_bytes = max_text_bytes);

// Reads the rest of an open file. If it is longer than `most_bytes`, throws Error (usage) that names `file`.
std::string read_rest(const UniqueFd& fd, const std::filesystem::path& file, std::uintmax_t most_bytes);

// Opens the folder that contains `name`, a relative path, without following any link. Empty if there is no
// such folder in `folder`.
UniqueFd open_parent_beneath(const std::filesystem::path& folder, const std::filesystem::path& name);

// Removes a UTF-8 byte order mark. For a UTF-16 one, throws Error (usage) that names `file`.
std::string remove_byte_order_mark(std::string text, const std::filesystem::path& file);
// Like remove_byte_order_mark(), for text that a person wrote. NUL bytes are an Error too, because they
// indicate UTF-16 without a mark.
std::string decode_text(std::string text, const std::filesystem::path& file);

}  // namespace remote
