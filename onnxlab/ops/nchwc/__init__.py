"""Operators of com.microsoft.nchwc: images with channels in blocks, as ONNX Runtime saves them.

Files:
    images  Kernels of ONNX Runtime's operators on other layouts of images: channels in blocks (NCHWc), and channels
            last.
"""
