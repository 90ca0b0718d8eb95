#pragma once

#include <array>
#include <string>
#include <string_view>

#include "wire/fields.hpp"

namespace remote::wire {

// Adds a public key to the user's authorized_keys if it is missing.
struct AuthorizeRequest {
  static constexpr std::string_view kind = "authorize";

  std::string type;  // "ssh-ed25519"
  std::string key;   // base64
  std::string comment;

  static constexpr auto fields() {
    return field_list(field("type", &AuthorizeRequest::type, a_word("._-@+", 100)),
                      field("key", &AuthorizeRequest::key, a_word("+/=", 65536)),
                      field("comment", &AuthorizeRequest::comment, a_line(65536)));
  }
};

enum class KeyState { added, present, restricted, failed };  // restricted: it is present, with options
template <>
inline constexpr std::array enum_names<KeyState> = std::to_array<std::string_view>({"added", "present",
                                                                                    "restricted", "failed"});

struct AuthorizeReply {
  static constexpr std::string_view kind = "authorize";

  KeyState state = KeyState::added;
  std::string open_folder{};  // other users may write there, so a strict sshd ignores the file; or ""
  std::string problem{};      // why it failed

  static constexpr auto fields() {
    return field_list(field("state", &AuthorizeReply::state),
                      field("open_folder", &AuthorizeReply::open_folder, a_line(4096)),
                      field("problem", &AuthorizeReply::problem, a_line(6000)));
  }
};

}  // namespace remote::wire
