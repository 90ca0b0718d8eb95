#pragma once

#include <compare>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <sys/stat.h>

// Paths of the server. The agent does not use std::filesystem, because libstdc++'s version pulls in the
// locales, which are a third of a static program.

namespace remote::agent {

class Path {
 public:
  Path() = default;
  Path(std::string text) : text_(std::move(text)) {}  // NOLINT(google-explicit-constructor): like std
  Path(std::string_view text) : text_(text) {}        // NOLINT(google-explicit-constructor)
  Path(const char* text) : text_(text) {}             // NOLINT(google-explicit-constructor)
  // Converts from and to std::filesystem::path, for tests.
  template <typename Other, typename = decltype(std::declval<const Other&>().native())>
  Path(const Other& other) : text_(other.native()) {}  // NOLINT(google-explicit-constructor)

  template <typename Other, typename = decltype(std::declval<const Other&>().native())>
  operator Other() const {
    return Other(text_);
  }  // NOLINT(google-explicit-constructor)

  const std::string& string() const { return text_; }
  operator const std::string&() const { return text_; }  // NOLINT(google-explicit-constructor)
  const char* c_str() const { return text_.c_str(); }
  bool empty() const { return text_.empty(); }
  bool is_absolute() const { return text_.starts_with('/'); }
  // The part after the last '/'.
  std::string filename() const { return text_.substr(text_.rfind('/') + 1); }
  // The parent folder: "/" for "/", and "" for a single name.
  Path parent_path() const;

  friend Path operator/(const Path& folder, const Path& name);
  friend bool operator==(const Path&, const Path&) = default;
  // NOLINTNEXTLINE(modernize-use-nullptr): false positive of clang-tidy 14
  friend std::strong_ordering operator<=>(const Path&, const Path&) = default;

 private:
  std::string text_;
};

// Follows links. nullopt if the path does not exist or cannot be reached.
std::optional<struct stat> look_at(const Path& path);
bool exists(const Path& path);
bool is_folder(const Path& path);
bool is_file(const Path& path);
// Whether it is an executable file.
bool is_program(const Path& path);
bool is_same_file(const Path& one, const Path& other);
// Whether a file was modified after another one.
bool is_newer(const struct stat& one, const struct stat& other);
// These do not follow links.
std::optional<struct stat> look_at_entry(const Path& path);
bool has_entry(const Path& path);
bool is_own_folder(const Path& path);

// The absolute path with links resolved; "" if it does not exist.
std::string find_real_path(const Path& path);
// The target of a link; "" if it is not a link.
std::string read_link(const Path& path);
// The sorted names in a folder, without "." and ".."; empty if it cannot be read.
std::vector<std::string> list_names(const Path& folder);

}  // namespace remote::agent
