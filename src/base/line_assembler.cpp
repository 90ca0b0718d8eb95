#include "base/line_assembler.hpp"

#include <algorithm>

namespace remote {

void LineAssembler::emit(std::string& out) {
  if (!bar_ || line_ != shown_state_) {
    out += prefix_ + line_ + '\n';
  }
  line_.clear();
  shown_state_.clear();
  bar_ = return_pending_ = false;
  shown_ = std::chrono::steady_clock::now();
}

std::string LineAssembler::take(std::string_view piece) {
  std::string out;
  while (!piece.empty()) {
    if (return_pending_ && piece.front() != '\n' && piece.front() != '\r') {
      line_.clear();
      bar_ = true;
      return_pending_ = false;
    }
    const std::size_t end = std::min(piece.find_first_of("\r\n"), piece.size());
    const std::size_t count = std::min(end, max_line_ - std::min(max_line_, line_.size()));
    line_.append(piece.substr(0, count));
    piece.remove_prefix(count);
    if (count < end) {  // the line has the maximum length
      emit(out);
      continue;
    }
    if (piece.empty()) {
      break;
    }
    if (piece.front() == '\n') {
      emit(out);
    } else {
      return_pending_ = true;
    }
    piece.remove_prefix(1);
  }
  if (bar_ && !line_.empty() && std::chrono::steady_clock::now() - shown_ >= bar_every_) {
    out += prefix_ + line_ + '\n';  // the line itself continues
    shown_state_ = line_;
    shown_ = std::chrono::steady_clock::now();
  }
  return out;
}

std::string LineAssembler::finish() {
  std::string out;
  if (!line_.empty()) {
    emit(out);
  }
  return out;
}

}  // namespace remote
