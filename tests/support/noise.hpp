#pragma once

#include <cstddef>
#include <random>
#include <string>

namespace remote::test {

// The text with one to four random changes: a changed byte, a removed part, a repeated part, or a truncated
// end.
inline std::string damaged(std::string text, std::mt19937& random) {
  for (unsigned changes = 1 + random() % 4; changes > 0 && !text.empty(); --changes) {
    const std::size_t at = random() % text.size();
    switch (random() % 4) {
      case 0:
        text[at] = static_cast<char>(random());
        break;
      case 1:
        text.erase(at, random() % 20);
        break;
      case 2:
        text.insert(at, text.substr(random() % text.size(), random() % 20));
        break;
      default:
        text.resize(random() % 8 == 0 ? at : text.size());
    }
  }
  return text;
}

}  // namespace remote::test
