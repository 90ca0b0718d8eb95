#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "base/files.hpp"

// Files of a folder from another person, such as a cloned project: nothing in it can make this program read a
// file outside.

namespace remote {

// More than any text that a person writes.
inline constexpr std::uintmax_t max_text_bytes = std::uintmax_t{4} << 20U;

// Opens the regular file `name`, a relative path, for reading. Links are followed as long as they stay in
// `folder`, whose own path may contain links, and out of `.git` and `.remote`, which hold secrets. Empty if
// there is no such file. Throws Error (usage) for other links, for ".." that leaves the folder, and for a
// folder, a FIFO and a device, which are not opened.
UniqueFd open_beneath(const std::filesystem::path& folder, const std::filesystem::path& name);

// The content of the same file; nullopt if there is none. Throws Error (usage) also if it is larger.
std::optional<std::string> read_beneath(const std::filesystem::path& folder,
                                        const std::filesystem::path& name,
                                        std::uintmax_t most_bytes = max_text_bytes);

// The rest of an open file. `file` is named in the Error (usage) if there are more bytes than that.
std::string read_rest(const UniqueFd& fd, const std::filesystem::path& file, std::uintmax_t most_bytes);

// Opens the folder that contains `name`, a relative path. Follows no link in it. Empty if there is no such
// folder in `folder`.
UniqueFd open_parent_beneath(const std::filesystem::path& folder, const std::filesystem::path& name);

// The text without a byte order mark of UTF-8. `file` is named in the Error (usage) for one of UTF-16.
std::string remove_byte_order_mark(std::string text, const std::filesystem::path& file);
// The same for text that a person wrote: NUL bytes are an Error, too, as UTF-16 without a mark has them.
std::string decode_text(std::string text, const std::filesystem::path& file);

}  // namespace remote
