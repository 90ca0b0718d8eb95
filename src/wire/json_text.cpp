#include "wire/json_text.hpp"

#include <cmath>

#include "base/decimal.hpp"
#include "base/format.hpp"
#include "wire/write.hpp"

namespace remote::wire {
namespace {

class TextWriter : public Writer {
 public:
  explicit TextWriter(bool keeps_bytes) : keeps_bytes_(keeps_bytes) {}

  void write_null() override { add("null"); }
  void write_bool(bool value) override { add(value ? "true" : "false"); }
  void write_integer(std::int64_t value) override { add(std::to_string(value)); }
  void write_unsigned(std::uint64_t value) override { add(std::to_string(value)); }
  void write_real(double value) override { add(std::isfinite(value) ? format_decimal(value) : "null"); }
  void write_string(std::string_view value) override { add(quote(value)); }
  void begin_list(std::size_t /*count*/) override { begin('[', ']'); }
  void begin_object(std::size_t /*count*/) override { begin('{', '}'); }
  void write_key(std::string_view key) override {
    add(quote(key));
    text_ += ':';
    is_first_ = true;
  }
  void end() override {
    text_ += ends_.back();
    ends_.pop_back();
    is_first_ = false;
  }

  std::string& text() { return text_; }

 private:
  void add(std::string_view text) {
    text_.append(is_first_ ? "" : ",").append(text);
    is_first_ = false;
  }
  void begin(char first, char last) {
    add(std::string_view(&first, 1));
    ends_ += last;
    is_first_ = true;
  }
  std::string quote(std::string_view text) const {
    std::string quoted = "\"";
    while (!text.empty()) {
      Character next = first_character(text);
      if (keeps_bytes_ && next.code == 0xfffd && next.size == 1) {
        next.code = 0xdc00U + static_cast<unsigned char>(text.front());
      }
      text.remove_prefix(next.size);
      if (next.code == '"' || next.code == '\\') {
        quoted += '\\';
      }
      if (next.code >= 0x20 && next.code < 0x7f) {
        quoted += static_cast<char>(next.code);
      } else if (next.code <= 0xffff) {
        quoted += text::format("\\u{:04x}", next.code);
      } else {
        quoted +=
            text::format("\\u{:04x}\\u{:04x}", 0xd7c0U + (next.code >> 10U), 0xdc00U + (next.code & 0x3ffU));
      }
    }
    return quoted + '"';
  }

  std::string text_;
  std::string ends_;  // the closing brackets of the open lists and objects
  bool is_first_ = true;
  bool keeps_bytes_;
};

}  // namespace

std::string to_json_text(const Type& type, const void* value, bool keeps_bytes) {
  TextWriter writer(keeps_bytes);
  write(type, value, writer);
  return std::move(writer.text());
}

}  // namespace remote::wire
