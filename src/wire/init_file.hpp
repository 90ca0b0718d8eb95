#pragma once

#include <array>
#include <string>
#include <string_view>

#include "wire/jobs.hpp"

// The shared file of a launch (docs/protocol.md, "The shared file").

namespace remote::wire {

enum class InitFileStep {
  make,      // create the launch's folder, on the first server
  make_all,  // like make, but also creates the folder that contains it
  see,       // check on another server that the launch's folder is the same
  drop,      // remove it, because no job was started
};

struct InitFileRequest {
  static constexpr std::string_view kind = "init_file";

  InitFileStep step = InitFileStep::make;
  std::string folder;   // the folder that contains the launch's folder
  std::string launch;   // the launch's id
  std::string maker{};  // for see: the server that created the folder

  static constexpr auto fields() {
    using R = InitFileRequest;
    return field_list(field("step", &R::step), field("folder", &R::folder, at_most(4096)),
                      field("launch", &R::launch, an_id()), field("maker", &R::maker, a_line(1000)));
  }
};

struct InitFileReply {
  static constexpr std::string_view kind = "init_file";

  std::string folder{};   // the launch's folder, which can be written to and locked; "" after `drop`
  std::string failure{};  // why it cannot be used; "" if it can be used

  static constexpr auto fields() {
    using R = InitFileReply;
    return field_list(field("folder", &R::folder, at_most(8192)),
                      field("failure", &R::failure, a_line(8192)));
  }
};

}  // namespace remote::wire

template <>
inline constexpr std::array remote::wire::enum_names<remote::wire::InitFileStep> = {
    std::string_view("make"), std::string_view("make_all"), std::string_view("see"),
    std::string_view("drop")};
