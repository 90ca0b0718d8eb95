#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string_view>
#include <utility>

#include <remote/error.hpp>

#include "base/strings.hpp"
#include "wire/malformed.hpp"
#include "wire/read_json.hpp"

namespace remote::servers {

// Reads the messages of a program that prints each on its own line: a mark and JSON. Ignores other lines,
// such as those of a login shell. Not thread-safe.
class MarkedLines {
 public:
  // Called with the JSON of a line. Throws wire::Malformed.
  using Take = std::function<void(std::string_view)>;

  // `mark` must outlive this object.
  MarkedLines(std::string_view mark, Take take) : mark_(mark), take_(std::move(take)) {}

  // Adds output in pieces of any size. After an error, everything is ignored.
  void add(std::string_view data);
  // Throws Error if a message was invalid.
  void check() const;
  std::size_t count() const { return count_; }
  // Whether the output ends in the middle of a message.
  bool is_cut() const { return lines_.rest().starts_with(mark_); }

 private:
  void take_line(std::string_view line);

  std::string_view mark_;
  Take take_;
  LineCutter lines_{mark_};
  std::size_t count_ = 0;
  std::optional<Error> failure_;
};

// Throws wire::Malformed.
template <typename Message>
Message parse_message(std::string_view json) {
  std::optional<Message> message = wire::read_json<Message>(json);
  if (!message) {
    throw wire::Malformed("", "is not JSON");
  }
  return *std::move(message);
}

}  // namespace remote::servers
