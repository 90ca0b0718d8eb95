#include "base/format.hpp"

namespace remote::text {

void Argument::append_to(std::string& text, std::string_view options) const {
  if (text_ != nullptr) {
    text.append(text_, value_);
    return;
  }
  const unsigned base = options.empty() ? 10 : 16;
  const std::size_t width = options.size() == 4 ? static_cast<std::size_t>(options[2] - '0') : 1;
  const char* const digits = options.ends_with('X') ? "0123456789ABCDEF" : "0123456789abcdef";
  std::array<char, 20> number{};
  std::size_t begin = number.size();
  for (std::uint64_t rest = value_; rest > 0 || begin + width > number.size(); rest /= base) {
    number[--begin] = digits[rest % base];
  }
  text.append(is_negative_ ? "-" : "").append(number.data() + begin, number.size() - begin);
}

std::string format_arguments(std::string_view form, const Argument* arguments) {
  std::string text;
  for (std::size_t at = form.find('{'); at != std::string_view::npos; at = form.find('{')) {
    const std::size_t end = form.find('}', at);
    text += form.substr(0, at);
    arguments++->append_to(text, form.substr(at + 1, end - at - 1));
    form.remove_prefix(end + 1);
  }
  return text.append(form);
}

}  // namespace remote::text
