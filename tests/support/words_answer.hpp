#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/subprocess.hpp"
#include "servers/answer.hpp"

// Answers of the simplest kind, for tests of how answers are read.

namespace remote::servers {

struct Words {
  std::vector<std::string> words;
  void take(AnswerLine& line) {
    if (line.kind() != "word") {
      line.refuse_kind();
    }
    words.emplace_back(line.word());
    line.end();
  }
};

struct Printed : Words {
  std::vector<std::string> others;
  ExecResult ended;
  void other(std::string_view line) { others.emplace_back(line); }
};

}  // namespace remote::servers
