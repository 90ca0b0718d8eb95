#pragma once

#include <array>
#include <string_view>

#include <remote/facts.hpp>

#include "wire/fields.hpp"

template <>
inline constexpr std::array remote::wire::enum_names<remote::FolderFlaw> = {
    std::string_view("none"),      std::string_view("full"),          std::string_view("quota"),
    std::string_view("read_only"), std::string_view("no_permission"), std::string_view("no_modes"),
    std::string_view("no_locks"),  std::string_view("no_links"),      std::string_view("other")};
