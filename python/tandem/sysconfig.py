"""tf.sysconfig."""
import os

CXX11_ABI_FLAG, CXX_VERSION, MONOLITHIC_BUILD = 1, 202002, 0


def get_build_info():
    return {"is_cuda_build": False, "is_rocm_build": False, "is_tensorrt_build": False}


def get_include():
    return os.path.join(get_lib(), "include")


def get_lib():
    return os.path.dirname(os.path.abspath(__file__))


def get_compile_flags():
    return [f"-I{get_include()}", f"-D_GLIBCXX_USE_CXX11_ABI={CXX11_ABI_FLAG}", "--std=c++20"]


def get_link_flags():
    return [f"-L{get_lib()}"]
