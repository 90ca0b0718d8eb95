#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "wire/fields.hpp"

// The facts that `check --deep` gets by importing torch (src/server/python/deep.py). The texts are untrusted
// and may contain any characters.

namespace remote::wire {

// Each message is a line that starts with this, followed by JSON.
constexpr std::string_view deep_mark = "remote-deep ";

constexpr Limits a_version = a_word("._+-", 255);

struct ImportedTorch {
  static constexpr std::string_view kind = "torch";

  std::string version;
  std::chrono::milliseconds took{0};

  static constexpr auto fields() {
    using T = ImportedTorch;
    return field_list(field("version", &T::version, a_version),
                      field("took", &T::took, in_range(0, 1 << 30)));
  }
};

// The import failed. Only the end message follows.
struct ImportFailed {
  static constexpr std::string_view kind = "failed";

  std::string reason;

  static constexpr auto fields() { return field_list(field("reason", &ImportFailed::reason)); }
};

struct ImportedDevices {
  static constexpr std::string_view kind = "devices";

  int count = 0;     // number of GPUs that torch can use
  std::string cuda;  // the version that torch was built with; "-": none

  static constexpr auto fields() {
    using D = ImportedDevices;
    return field_list(field("count", &D::count, in_range(0, 1024)), field("cuda", &D::cuda, a_version));
  }
};

struct ImportedNccl {
  static constexpr std::string_view kind = "nccl";

  std::string version;

  static constexpr auto fields() { return field_list(field("version", &ImportedNccl::version, a_version)); }
};

// Torch failed to report its devices or NCCL.
struct ImportTrouble {
  static constexpr std::string_view kind = "trouble";

  std::string reason;

  static constexpr auto fields() { return field_list(field("reason", &ImportTrouble::reason)); }
};

// A shared library that is mapped into the process.
struct ImportedLibrary {
  static constexpr std::string_view kind = "library";

  std::string digest;
  std::uint64_t size = 0;  // bytes
  std::string path;

  static constexpr auto fields() {
    using L = ImportedLibrary;
    return field_list(field("digest", &L::digest, a_word("", 255)), field("size", &L::size),
                      field("path", &L::path));
  }
};

// The last message.
struct ImportEnd {
  static constexpr std::string_view kind = "end";

  static constexpr auto fields() { return field_list(); }
};

using ImportMessage = std::variant<ImportedTorch, ImportFailed, ImportedDevices, ImportedNccl, ImportTrouble,
                                   ImportedLibrary, ImportEnd>;

}  // namespace remote::wire
