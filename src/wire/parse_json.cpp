#include "wire/parse_json.hpp"

#include <algorithm>
#include <bit>
#include <charconv>

#include "base/decimal.hpp"
#include "base/strings.hpp"
#include "wire/text.hpp"

namespace remote::wire {
namespace {

void append_character(std::string& text, std::uint32_t code) {
  const auto add = [&](std::uint32_t byte) { text += static_cast<char>(byte); };
  const auto add_rest = [&](unsigned shift) { add(0x80U | (code >> shift & 0x3fU)); };
  if (code < 0x80) {
    add(code);
  } else if (code < 0x800) {
    add(0xc0U | code >> 6U);
    add_rest(0);
  } else if (code < 0x10000) {
    add(0xe0U | code >> 12U);
    add_rest(6);
    add_rest(0);
  } else {
    add(0xf0U | code >> 18U);
    add_rest(12);
    add_rest(6);
    add_rest(0);
  }
}

}  // namespace

// The functions return false if the text is not JSON.
class JsonParser {
 public:
  JsonParser(std::string_view text, JsonDocument& document) : rest_(text), document_(document) {}

  bool parse_all() {
    if (!parse(document_.value_, 0)) {
      return false;
    }
    skip_space();
    return rest_.empty();
  }

 private:
  void skip_space() { rest_.remove_prefix(std::min(rest_.find_first_not_of(" \t\r\n"), rest_.size())); }
  bool skip(std::string_view word) {
    if (!rest_.starts_with(word)) {
      return false;
    }
    rest_.remove_prefix(word.size());
    return true;
  }

  bool parse(Value& value, std::size_t depth) {
    skip_space();
    if (depth > max_json_depth) {
      return false;
    }
    if (skip("{")) {
      value.kind = Value::Kind::object;
      return parse_members(value, depth);
    }
    if (skip("[")) {
      value.kind = Value::Kind::list;
      return parse_members(value, depth);
    }
    if (rest_.starts_with('"')) {
      value.kind = Value::Kind::string;
      return parse_string(value.string);
    }
    if (skip("null")) {
      return true;
    }
    value.boolean = rest_.starts_with("true");
    value.kind = Value::Kind::boolean;
    return skip("true") || skip("false") || parse_number(value);
  }

  // Parses the rest of a list or an object after its opening bracket.
  bool parse_members(Value& parent, std::size_t depth) {
    const bool is_object = parent.is(Value::Kind::object);
    const std::string_view last = is_object ? "}" : "]";
    skip_space();
    if (skip(last)) {
      return true;
    }
    do {
      Value& value = parent.values.emplace_back();
      skip_space();
      if (is_object) {
        if (!parse_string(value.name)) {
          return false;
        }
        skip_space();
        if (!skip(":")) {
          return false;
        }
      }
      if (!parse(value, depth + 1)) {
        return false;
      }
      skip_space();
    } while (skip(","));
    return skip(last);
  }

  bool parse_string(std::string_view& text) {
    if (!skip("\"")) {
      return false;
    }
    std::string& string = document_.strings_.emplace_back();
    while (!rest_.empty() && rest_.front() != '"') {
      if (skip("\\")) {
        if (!parse_escape(string)) {
          return false;
        }
        continue;
      }
      const auto [code, size] = first_character(rest_);
      if (code < 0x20 || (code == 0xfffd && size == 1)) {
        return false;
      }
      string += rest_.substr(0, size);
      rest_.remove_prefix(size);
    }
    text = string;
    return skip("\"");
  }

  bool parse_escape(std::string& string) {
    constexpr std::string_view escapes = "\"\\/bfnrtu";
    const std::size_t kind = rest_.empty() ? std::string_view::npos : escapes.find(rest_.front());
    if (kind == std::string_view::npos) {
      return false;
    }
    rest_.remove_prefix(1);
    if (kind + 1 < escapes.size()) {
      string += "\"\\/\b\f\n\r\t"[kind];
      return true;
    }
    std::uint32_t code = 0;
    if (!parse_unit(code)) {
      return false;
    }
    if (std::uint32_t second = 0; code >= 0xd800 && code < 0xdc00) {
      if (!skip("\\u") || !parse_unit(second) || second < 0xdc00 || second > 0xdfff) {
        return false;
      }
      code = 0x10000 + ((code & 0x3ffU) << 10U) + (second & 0x3ffU);
    } else if (code >= 0xdc80 && code <= 0xdcff) {
      string += static_cast<char>(code & 0xffU);  // see to_json_bytes()
      return true;
    } else if (code >= 0xdc00 && code <= 0xdfff) {
      return false;
    }
    append_character(string, code);
    return true;
  }
  bool parse_unit(std::uint32_t& unit) {
    const std::string_view digits = rest_.substr(0, 4);
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), unit, 16);
    rest_.remove_prefix(digits.size());
    return digits.size() == 4 && error == std::errc() && end == digits.data() + 4;
  }

  bool parse_number(Value& value) {
    std::size_t size = 0;
    const bool begins = !rest_.empty() && (rest_[0] == '-' || (rest_[0] >= '0' && rest_[0] <= '9'));
    const auto real = begins ? decimal_at(rest_, size) : std::nullopt;
    const std::string_view text = rest_.substr(0, size);
    rest_.remove_prefix(size);
    if (const auto number = remote::parse_number<std::uint64_t>(text)) {
      value.kind = Value::Kind::unsigned_integer;
      value.number = *number;
    } else if (const auto below_zero = remote::parse_number<std::int64_t>(text)) {
      value.kind = Value::Kind::integer;
      value.number = static_cast<std::uint64_t>(*below_zero);
    } else {
      value.kind = Value::Kind::real;
      value.number = std::bit_cast<std::uint64_t>(real.value_or(0));
    }
    return real.has_value();
  }

  std::string_view rest_;
  JsonDocument& document_;
};

std::optional<JsonDocument> JsonDocument::parse(std::string_view text) {
  std::optional<JsonDocument> document{std::in_place};
  if (!JsonParser(text, *document).parse_all()) {
    document.reset();
  }
  return document;
}

}  // namespace remote::wire
