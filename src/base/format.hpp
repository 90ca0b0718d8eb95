#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

// A small subset of fmt::format() for the agent, because fmt would make the agent 20 KB larger. The fields
// are {} for texts, characters and integers, and {:x}, {:02x}, {:04X} and similar for unsigned integers.
// Braces cannot be printed.

namespace remote::text {

// Holds a reference to its value.
class Argument {
 public:
  Argument(const char& character) : text_(&character), value_(1) {}
  Argument(std::string_view text) : text_(text.data() == nullptr ? "" : text.data()), value_(text.size()) {}
  template <typename Text>
  requires std::convertible_to<const Text&, std::string_view> Argument(const Text& text)
      : Argument(std::string_view(text)) {}
  template <std::integral Integer>
  Argument(Integer number)
      : value_(number < 0 ? 0 - static_cast<std::uint64_t>(number) : static_cast<std::uint64_t>(number)),
        is_negative_(number < 0) {}
  Argument(bool) = delete;

  // `options` is the text between the braces of the field, such as ":02x".
  void append_to(std::string& text, std::string_view options) const;

 private:
  const char* text_ = nullptr;  // nullptr if it is a number
  std::uint64_t value_;         // or the text's size
  bool is_negative_ = false;
};

std::string format_arguments(std::string_view form, const Argument* arguments);

// A string literal that is checked against the argument types at compile time.
template <typename... Arguments>
class Form {
 public:
  consteval Form(const char* form) : form_(form) {
    constexpr std::array<bool, sizeof...(Arguments) + 1> is_unsigned{std::unsigned_integral<Arguments>...};
    std::size_t field = 0;
    for (std::string_view rest = form_; rest.find_first_of("{}") != std::string_view::npos; ++field) {
      rest.remove_prefix(rest.find_first_of("{}"));
      const std::size_t end = rest.find('}');
      if (rest.front() != '{' || end == std::string_view::npos || field == sizeof...(Arguments)) {
        throw "a wrong field";
      }
      const std::string_view options = rest.substr(1, end - 1);
      if (!options.empty() && !(is_unsigned[field] && is_for_number(options))) {
        throw "wrong options of a field";
      }
      rest.remove_prefix(end + 1);
    }
    if (field != sizeof...(Arguments)) {
      throw "more arguments than fields";
    }
  }
  constexpr std::string_view get() const { return form_; }

 private:
  // ":x", ":X", or with a width: ":04x"
  static constexpr bool is_for_number(std::string_view options) {
    const bool has_width = options.size() == 4 && options[1] == '0' && options[2] > '0' && options[2] <= '9';
    return options.front() == ':' && (has_width || options.size() == 2) &&
           (options.back() == 'x' || options.back() == 'X');
  }

  std::string_view form_;
};

template <typename... Arguments>
std::string format(std::type_identity_t<Form<Arguments...>> form, const Arguments&... arguments) {
  const std::array<Argument, sizeof...(Arguments)> all{Argument(arguments)...};
  return format_arguments(form.get(), all.data());
}

}  // namespace remote::text
